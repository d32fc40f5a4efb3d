# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Image data sets, as arrays.

Images are uint8 all the way to the model, which standardizes its pixels itself:
a quarter of the bytes that float32 would need on their way to the clients.
"""

import dataclasses
import functools
import gzip
import hashlib
import os
import pickle
from typing import Callable, Dict, Optional, Sequence
import zlib

import numpy as np

FASHION_MNIST_DIR = '/usr/share/datasets/fashion-mnist'
CIFAR10_FOLDER = 'cifar-10-batches-py'
# The digits come without a test set; this fixed split is part of the data set
# here, the same for every seed of every run.
_DIGITS_TEST_SIZE = 360
_DIGITS_SPLIT_SEED = 2019


@dataclasses.dataclass(frozen=True)
class ImageData:
  """Images and labels, split into training and test set.

  Attributes:
    name: How results name the data, for instance 'CIFAR-10'.
    train_images: uint8 array of shape [examples, height, width, channels].
    train_labels: int32 array of shape [examples].
    test_images: As `train_images`.
    test_labels: As `train_labels`.
    num_classes: Number of classes.
  """

  name: str
  train_images: np.ndarray
  train_labels: np.ndarray
  test_images: np.ndarray
  test_labels: np.ndarray
  num_classes: int = 10

  @property
  def image_shape(self) -> Sequence[int]:
    """Height, width and channels."""
    return tuple(self.train_images.shape[1:])

  @functools.cached_property
  def sha256(self) -> str:
    """Hexadecimal hash of all images and labels, with their shapes."""
    digest = hashlib.sha256()
    for array in (
      self.train_images,
      self.train_labels,
      self.test_images,
      self.test_labels,
    ):
      digest.update(repr((array.dtype.str, array.shape)).encode())
      digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()

  @functools.cached_property
  def channel_statistics(self):
    """float32 mean and standard deviation per channel of the training set.

    Computed from exact pixel counts, so it does not depend on summation order.
    """
    means, stddevs = [], []
    for channel in range(self.image_shape[-1]):
      counts = np.bincount(
        self.train_images[..., channel].ravel(), minlength=256
      )
      values = np.arange(counts.size, dtype=np.float64)
      mean = np.average(values, weights=counts)
      means.append(mean)
      stddevs.append(np.sqrt(np.average((values - mean) ** 2, weights=counts)))
    # A channel without contrast would divide by zero.
    stddevs = [s if s > 0 else 1.0 for s in stddevs]
    return np.float32(means), np.float32(stddevs)


def _missing(name: str, path: str, advice: str) -> FileNotFoundError:
  return FileNotFoundError(
    f'The {name} file {os.path.basename(path)!r} was not found in '
    f'{os.path.dirname(path)!r}. {advice}'
  )


def load_digits(data_dir: Optional[str], allow_download: bool) -> ImageData:
  """The 1,797 8x8 handwritten digits of the UCI set, as scikit-learn has them.

  Split into 1,437 training and 360 test images by a fixed permutation.
  """
  del data_dir, allow_download  # Ships with scikit-learn.
  from sklearn import datasets as sklearn_datasets  # Slow; needed only here.

  digits = sklearn_datasets.load_digits()
  images = digits.images.astype(np.uint8)[..., np.newaxis]
  labels = digits.target.astype(np.int32)
  order = np.random.default_rng(_DIGITS_SPLIT_SEED).permutation(len(labels))
  test, train = order[:_DIGITS_TEST_SIZE], order[_DIGITS_TEST_SIZE:]
  return ImageData(
    'UCI digits', images[train], labels[train], images[test], labels[test]
  )


def _read_idx(path: str, magic: int, num_dims: int) -> np.ndarray:
  """Reads one gzipped IDX file of unsigned bytes."""
  try:
    with gzip.open(path, 'rb') as f:
      content = f.read()
  except (gzip.BadGzipFile, EOFError, zlib.error) as e:
    raise ValueError(
      f'{path!r} must be a gzipped file, found a broken one ({e}). Download or '
      'install the file again.'
    ) from e
  header = np.frombuffer(content, '>i4', count=1 + num_dims)
  if header[0] != magic:
    raise ValueError(
      f'{path!r} must be a gzipped IDX file with magic number {magic}, found '
      f'{header[0]}. Download or install the file again.'
    )
  shape = tuple(int(size) for size in header[1:])
  data = np.frombuffer(content, np.uint8, offset=4 * (1 + num_dims))
  if data.size != np.prod(shape):
    raise ValueError(
      f'{path!r} must hold {int(np.prod(shape))} bytes of data, found '
      f'{data.size}. Download or install the file again.'
    )
  return data.reshape(shape)


def load_fashion_mnist(
  data_dir: Optional[str], allow_download: bool
) -> ImageData:
  """Fashion-MNIST (Xiao et al. 2017): 60,000 and 10,000 28x28 images.

  Args:
    data_dir: Folder of the four gzipped IDX files; None for the folder of
      Debian's package `dataset-fashion-mnist`.
    allow_download: Whether Keras may download the files if they are missing.

  Returns:
    The data set.

  Raises:
    FileNotFoundError: If a file is missing and no download is allowed.
  """
  folder = data_dir or FASHION_MNIST_DIR
  arrays = {}
  for split, stem in (('train', 'train'), ('test', 't10k')):
    for kind, magic, dims in (('images', 2051, 3), ('labels', 2049, 1)):
      path = os.path.join(folder, f'{stem}-{kind}-idx{dims}-ubyte.gz')
      if not os.path.exists(path):
        if allow_download:
          return _from_keras('Fashion-MNIST', 'fashion_mnist')
        raise _missing(
          'Fashion-MNIST',
          path,
          'Install it on Debian or Ubuntu with `apt-get install '
          'dataset-fashion-mnist`, name the folder that has it with '
          '--data_dir, or let Keras fetch it with --allow_download.',
        )
      arrays[split, kind] = _read_idx(path, magic, dims)
  return ImageData(
    'Fashion-MNIST',
    arrays['train', 'images'][..., np.newaxis],
    arrays['train', 'labels'].astype(np.int32),
    arrays['test', 'images'][..., np.newaxis],
    arrays['test', 'labels'].astype(np.int32),
  )


def load_cifar10(data_dir: Optional[str], allow_download: bool) -> ImageData:
  """CIFAR-10 (Krizhevsky 2009): 50,000 and 10,000 colour images of 32x32.

  Args:
    data_dir: Folder that contains `cifar-10-batches-py`, the layout of the
      "python version" archive.
    allow_download: Whether Keras may download the files if they are missing.

  Returns:
    The data set. Its name ends in '(JPEG re-encoded)' when the batches say
    that their images came from JPEG files.

  Raises:
    FileNotFoundError: If a file is missing and no download is allowed.
  """
  folder = os.path.join(data_dir or os.curdir, CIFAR10_FOLDER)
  images, labels = [], []
  reencoded = False
  for name in [f'data_batch_{i}' for i in range(1, 6)] + ['test_batch']:
    path = os.path.join(folder, name)
    if not os.path.exists(path):
      if allow_download:
        return _from_keras('CIFAR-10', 'cifar10')
      raise _missing(
        'CIFAR-10',
        path,
        'Download the python version of CIFAR-10 from '
        'https://www.cs.toronto.edu/~kriz/cifar.html, unpack it, and name '
        f'the folder that holds {CIFAR10_FOLDER!r} with --data_dir; or let '
        'Keras fetch it with --allow_download.',
      )
    try:
      with open(path, 'rb') as f:
        batch = pickle.load(f, encoding='bytes')
    except (pickle.UnpicklingError, EOFError) as e:
      raise ValueError(
        f'{path!r} must be a pickled batch, found a broken one ({e}). Download '
        'and unpack it again.'
      ) from e
    # Rows are 1024 red, 1024 green and 1024 blue bytes.
    planes = np.asarray(batch[b'data'], np.uint8).reshape(-1, 3, 32, 32)
    images.append(planes.transpose(0, 2, 3, 1))
    labels.append(np.asarray(batch[b'labels'], np.int32))
    reencoded |= any(
      n.endswith((b'.jpg', b'.jpeg')) for n in batch.get(b'filenames', [])[:1]
    )
  return ImageData(
    'CIFAR-10 (JPEG re-encoded)' if reencoded else 'CIFAR-10',
    np.concatenate(images[:5]),
    np.concatenate(labels[:5]),
    images[5],
    labels[5],
  )


def _from_keras(name, module) -> ImageData:
  import tensorflow as tf  # Slow; needed only here.

  (train_x, train_y), (test_x, test_y) = getattr(
    tf.keras.datasets, module
  ).load_data()
  if train_x.ndim == 3:
    train_x, test_x = train_x[..., np.newaxis], test_x[..., np.newaxis]
  return ImageData(
    name,
    train_x,
    train_y.ravel().astype(np.int32),
    test_x,
    test_y.ravel().astype(np.int32),
  )


_LOADERS: Dict[str, Callable[[Optional[str], bool], ImageData]] = {
  'digits': load_digits,
  'fashion_mnist': load_fashion_mnist,
  'cifar10': load_cifar10,
}
NAMES = tuple(_LOADERS)
_SHAPES = {
  'digits': (8, 8, 1),
  'fashion_mnist': (28, 28, 1),
  'cifar10': (32, 32, 3),
}


def load(
  name: str,
  *,
  data_dir: Optional[str] = None,
  allow_download: bool = False,
) -> ImageData:
  """Loads a data set by its name in `NAMES`.

  Args:
    name: One of `NAMES`.
    data_dir: Where its files lie; None for the usual place.
    allow_download: Whether Keras may download missing files.

  Returns:
    The data set.

  Raises:
    ValueError: If there is no data set of that name.
    FileNotFoundError: If files are missing; the message says how to get them.
  """
  if name not in _LOADERS:
    raise ValueError(
      f'`dataset` must be one of {", ".join(NAMES)}, found {name!r}.'
    )
  return _LOADERS[name](data_dir, allow_download)


def synthetic(name: str, *, num_train: int, num_test: int) -> ImageData:
  """Random images shaped like the data set `name`, for smoke runs."""
  rng = np.random.default_rng(0)

  def draw(count):
    images = rng.integers(0, 256, (count,) + _SHAPES[name], dtype=np.uint8)
    return images, (np.arange(count) % 10).astype(np.int32)

  return ImageData(
    f'random images shaped like {name}', *draw(num_train), *draw(num_test)
  )
