# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What each aspect of an aggregation does at clients and at the server.

Plain TensorFlow on lists of tensors; `factories.chain` wires stages into one
federated computation. What a client's value goes through, from above::

    autotuned_secure_aggregator     distributed_dp_aggregator
      weigh      multiply           flatten      one vector
      flatten    one vector         clip         limit the norm
      rotate     look normal        rotate       spread
      quantize   bins, residues     sample       only some, if asked for
      wire       sum exactly        share_noise  noise, residues
                                    wire         sum exactly

With a prediction, `predict` is in the place of rotate and quantize.

`stage` says what a stage is, `state_guard` how a state of others is refused.
"""
