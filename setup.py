# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Metadata of the package. Tools are set in pyproject.toml."""

import pathlib
import runpy

import setuptools

_HERE = pathlib.Path(__file__).resolve().parent

# The file holds one assignment, so running it needs no TensorFlow.
_VERSION = runpy.run_path(str(_HERE / 'tff_autotune_secagg' / '_version.py'))[
  '__version__'
]

_EXPERIMENTS = [
  'matplotlib',
  'scikit-learn',
  'setuptools<82',
  'tabulate',
  'tensorboard',
]

setuptools.setup(
  name='tff_autotune_secagg',
  version=_VERSION,
  description=(
    'Secure sums for TensorFlow Federated that tune their own quantization.'
  ),
  long_description=(_HERE / 'README.md').read_text(encoding='utf-8'),
  long_description_content_type='text/markdown',
  author='The tff_autotune_secagg Authors',
  license='Apache-2.0',
  license_files=['LICENSE'],
  keywords=[
    'federated learning',
    'secure aggregation',
    'quantization',
    'tensorflow federated',
  ],
  classifiers=[
    'Development Status :: 4 - Beta',
    'Intended Audience :: Developers',
    'Intended Audience :: Science/Research',
    'Operating System :: POSIX :: Linux',
    'Programming Language :: Python :: 3',
    'Programming Language :: Python :: 3 :: Only',
    'Programming Language :: Python :: 3.9',
    'Programming Language :: Python :: 3.10',
    'Programming Language :: Python :: 3.11',
    'Topic :: Scientific/Engineering :: Artificial Intelligence',
    'Typing :: Typed',
  ],
  python_requires='>=3.9,<3.12',
  packages=setuptools.find_packages(
    include=['tff_autotune_secagg', 'tff_autotune_secagg.*']
  ),
  entry_points={
    'console_scripts': [
      'tff-autotune-planner = tff_autotune_secagg.planner:run'
    ]
  },
  package_data={'tff_autotune_secagg': ['py.typed']},
  zip_safe=False,
  install_requires=[
    'absl-py',
    'dm-tree',
    'dp-accounting',
    'grpcio',
    'numpy',
    'scipy',
    'tensorflow==2.14.*',
    'tensorflow-federated==0.87.0',
    'tensorflow-model-optimization==0.7.5',
  ],
  extras_require={
    'experiments': [*_EXPERIMENTS, 'tqdm'],
    'test': [
      'cryptography',
      'hypothesis',
      'mpmath',
      'pytest',
      *_EXPERIMENTS,
      'tqdm',
    ],
  },
)
