# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Secure aggregation by pairwise masks, to be tested and counted.

The protocol of Bonawitz et al. (2017, ACM CCS, "Practical Secure Aggregation
for Privacy-Preserving Machine Learning") against a server that is curious and
honest:

    advertise   each client publishes two X25519 keys
    share       each sends every other one an encrypted Shamir share of its mask
                key and of its self mask's seed
    mask        x + PRG(self) + sum_{v > u} PRG(u, v) - sum_{v < u} PRG(u, v)
                modulo k, from those who have not dropped out
    unmask      the survivors reveal, of each client, one of the two: the seed
                of a survivor, the mask key of one that dropped out

Messages are bytes, so that their lengths are what a network would carry
(without its own framing). Not for use: no signatures, no consistency check,
nothing constant in time.
"""

import math
import os
from typing import Callable, Dict, List, NamedTuple, Sequence, Set, Tuple

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import x25519
from cryptography.hazmat.primitives.ciphers import aead
from cryptography.hazmat.primitives.ciphers import algorithms
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.kdf import hkdf
import numpy as np

from tff_autotune_secagg.numerics.rounding import quantization

# The smallest prime above 2**256: holds any secret of 32 bytes.
PRIME = 2**256 + 297
# Masks are made of 32-bit words.
MAX_MODULUS = 2**32

_KEY_BYTES = 32
_SHARE_BYTES = 33
_ZERO_NONCE = bytes(12)  # Each key encrypts one message.

RandomBytes = Callable[[int], bytes]


def split_secret(
  secret: bytes, num_shares: int, threshold: int, random_bytes: RandomBytes
) -> List[int]:
  """Shamir shares of 32 bytes: values at 1, 2, ... of a random polynomial."""
  coefficients = [int.from_bytes(secret, 'big')]
  for _ in range(threshold - 1):
    # 16 bytes more than the field has make the remainder uniform.
    coefficients.append(int.from_bytes(random_bytes(48), 'big') % PRIME)
  shares = []
  for x in range(1, num_shares + 1):
    value = 0
    for coefficient in reversed(coefficients):
      value = (value * x + coefficient) % PRIME
    shares.append(value)
  return shares


def join_shares(shares: Dict[int, int]) -> bytes:
  """The secret from shares {x: value}, by Lagrange interpolation at 0."""
  secret = 0
  for x, value in shares.items():
    numerator = denominator = 1
    for other in shares:
      if other != x:
        numerator = numerator * other % PRIME
        denominator = denominator * (other - x) % PRIME
    secret += value * numerator * pow(denominator, PRIME - 2, PRIME)
  # Too few shares give a number that may not fit in 32 bytes.
  return (secret % PRIME).to_bytes(_SHARE_BYTES, 'big')[-_KEY_BYTES:]


def mask(key: bytes, dim: int, modulus: int) -> np.ndarray:
  """`dim` uniform residues, int64, from a ChaCha20 stream.

  Words at or above the largest multiple of the modulus are skipped, which makes
  the residues uniform for every modulus up to `MAX_MODULUS`.
  """
  stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
  limit = MAX_MODULUS // modulus * modulus
  residues = np.zeros([0], np.int64)
  while residues.size < dim:
    missing = dim - residues.size
    words = stream.update(bytes(4 * (missing + missing // 8 + 16)))
    words = np.frombuffer(words, '<u4').astype(np.int64)
    words = words[words < limit]
    residues = np.concatenate([residues, words % modulus])
  return residues[:dim]


def pack(residues: np.ndarray, modulus: int) -> bytes:
  """Residues as a string of as many bits each as the modulus needs."""
  words = residues.astype('>u4').view(np.uint8).reshape([-1, 4])
  bits = np.unpackbits(words, axis=1)[:, 32 - quantization.num_bits(modulus) :]
  return np.packbits(bits).tobytes()


def unpack(message: bytes, dim: int, modulus: int) -> np.ndarray:
  """Inverse of `pack`, int64."""
  width = quantization.num_bits(modulus)
  bits = np.unpackbits(np.frombuffer(message, np.uint8), count=dim * width)
  words = np.zeros([dim, 32], np.uint8)
  words[:, 32 - width :] = bits.reshape([dim, width])
  return np.packbits(words, axis=1).view('>u4').reshape([-1]).astype(np.int64)


def _derive(secret: bytes, purpose: bytes) -> bytes:
  return hkdf.HKDF(hashes.SHA256(), _KEY_BYTES, None, purpose).derive(secret)


def _agree(private: bytes, public: bytes, purpose: bytes) -> bytes:
  """A key that both owners of the two key pairs compute, and nobody else."""
  key = x25519.X25519PrivateKey.from_private_bytes(private)
  secret = key.exchange(x25519.X25519PublicKey.from_public_bytes(public))
  return _derive(secret, purpose)


def _public(private: bytes) -> bytes:
  key = x25519.X25519PrivateKey.from_private_bytes(private).public_key()
  return key.public_bytes(
    serialization.Encoding.Raw, serialization.PublicFormat.Raw
  )


class Client:
  """One client; `index` counts from 1 and is its Shamir abscissa."""

  def __init__(
    self,
    index: int,
    residues: np.ndarray,
    modulus: int,
    threshold: int,
    random_bytes: RandomBytes = os.urandom,
  ):
    self._index = index
    self._residues = np.asarray(residues, np.int64)
    self._modulus = modulus
    self._threshold = threshold
    self._random_bytes = random_bytes
    self._channel_key = random_bytes(_KEY_BYTES)
    self._mask_key = random_bytes(_KEY_BYTES)
    self._self_seed = random_bytes(_KEY_BYTES)
    self._public_keys: Dict[int, Tuple[bytes, bytes]] = {}
    self._shares: Dict[int, bytes] = {}

  def advertise(self) -> bytes:
    """The two public keys."""
    return _public(self._channel_key) + _public(self._mask_key)

  def share(self, advertised: Dict[int, bytes]) -> Dict[int, bytes]:
    """An encrypted message for each client, this one included."""
    self._public_keys = {
      index: (message[:_KEY_BYTES], message[_KEY_BYTES:])
      for index, message in advertised.items()
    }
    order = sorted(advertised)
    if order != list(range(1, len(order) + 1)):
      raise ValueError('Clients must be numbered 1, 2, ... without a gap.')
    parts = [
      split_secret(s, len(order), self._threshold, self._random_bytes)
      for s in (self._mask_key, self._self_seed)
    ]
    messages = {}
    for index, shares in zip(order, zip(*parts)):
      plain = b''.join(s.to_bytes(_SHARE_BYTES, 'big') for s in shares)
      cipher = aead.ChaCha20Poly1305(self._channel(index, self._index))
      messages[index] = cipher.encrypt(_ZERO_NONCE, plain, None)
    return messages

  def _channel(self, other: int, sender: int) -> bytes:
    """Key of one direction of the channel to another client."""
    purpose = b'channel from %d' % sender
    return _agree(self._channel_key, self._public_keys[other][0], purpose)

  def masked_input(self, received: Dict[int, bytes]) -> bytes:
    """The masked vector, after the messages of all who have shared."""
    for index, message in received.items():
      cipher = aead.ChaCha20Poly1305(self._channel(index, index))
      self._shares[index] = cipher.decrypt(_ZERO_NONCE, message, None)
    dim = self._residues.size
    total = self._residues + mask(
      _derive(self._self_seed, b'self'), dim, self._modulus
    )
    for index in received:
      if index != self._index:
        key = _agree(self._mask_key, self._public_keys[index][1], b'pair')
        sign = 1 if index > self._index else -1
        total += sign * mask(key, dim, self._modulus)
    return pack(total % self._modulus, self._modulus)

  def unmask(self, survivors: Set[int]) -> Dict[int, bytes]:
    """One share of each client: of its seed, or its mask key if it is gone."""
    if len(survivors) < self._threshold:
      raise ValueError(
        f'At least {self._threshold} clients must survive, found'
        f' {len(survivors)}.'
      )
    shares, self._shares = self._shares, {}  # Answers once only.
    return {
      index: s[_SHARE_BYTES:] if index in survivors else s[:_SHARE_BYTES]
      for index, s in shares.items()
    }


class Outcome(NamedTuple):
  """What a run of the protocol gave.

  Attributes:
    total: The sum of the survivors' residues modulo k, int64.
    masked: What the server saw of each survivor, residues.
    sent: Bytes that each client sent, by step.
    received: Bytes that each client received, by step.
  """

  total: np.ndarray
  masked: Dict[int, np.ndarray]
  sent: Dict[int, Dict[str, int]]
  received: Dict[int, Dict[str, int]]


def run(
  vectors: Sequence[np.ndarray],
  modulus: int,
  threshold: int,
  dropped: Sequence[int] = (),
  random_bytes: RandomBytes = os.urandom,
) -> Outcome:
  """Runs the protocol in this process; the server's part is this function.

  Args:
    vectors: The clients' residues, int [dim], in 0 .. modulus - 1.
    modulus: int in 2 .. 2**32.
    threshold: Survivors needed, and shares that recover a secret.
    dropped: Clients, from 1 on, that vanish after they shared their keys.
    random_bytes: Source of keys; tests make it deterministic.

  Returns:
    An `Outcome`.

  Raises:
    ValueError: Fewer than `threshold` clients survive.
  """
  dim = np.size(vectors[0])
  clients = {
    i: Client(i, v, modulus, threshold, random_bytes)
    for i, v in enumerate(vectors, 1)
  }
  sent = {i: {} for i in clients}
  received = {i: {} for i in clients}

  advertised = {i: client.advertise() for i, client in clients.items()}
  shared = {i: client.share(advertised) for i, client in clients.items()}
  for i in clients:
    sent[i]['advertise'] = len(advertised[i])
    received[i]['advertise'] = sum(map(len, advertised.values()))
    sent[i]['share'] = sum(map(len, shared[i].values()))
    received[i]['share'] = sum(len(shared[j][i]) for j in clients)

  survivors = {i: c for i, c in clients.items() if i not in dropped}
  masked = {}
  for i, client in survivors.items():
    message = client.masked_input({j: shared[j][i] for j in clients})
    sent[i]['mask'] = len(message)
    masked[i] = unpack(message, dim, modulus)
  total = sum(masked.values(), np.zeros([dim], np.int64))

  answers = {i: c.unmask(set(survivors)) for i, c in survivors.items()}
  for i in survivors:
    received[i]['unmask'] = math.ceil(len(clients) / 8)  # A bit for each.
    sent[i]['unmask'] = sum(map(len, answers[i].values()))
  for index in clients:
    shares = {
      i: int.from_bytes(answers[i][index], 'big')
      for i in list(survivors)[:threshold]
    }
    secret = join_shares(shares)
    if index in survivors:
      total -= mask(_derive(secret, b'self'), dim, modulus)
      continue
    for i in survivors:
      key = _agree(secret, advertised[i][_KEY_BYTES:], b'pair')
      # What the survivor i added for the lost `index` is taken off again.
      total -= (1 if index > i else -1) * mask(key, dim, modulus)
  return Outcome(total % modulus, masked, sent, received)
