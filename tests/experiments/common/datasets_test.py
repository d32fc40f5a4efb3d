# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import gzip
import os
import pickle

from absl.testing import absltest
import numpy as np

from experiments.common import datasets


class LoadTest(absltest.TestCase):
  def test_digits_are_split_without_overlap(self):
    data = datasets.load('digits')
    self.assertEqual(data.train_images.shape, (1437, 8, 8, 1))
    self.assertEqual(data.test_images.shape, (360, 8, 8, 1))
    self.assertEqual(data.train_images.dtype, np.uint8)
    self.assertLessEqual(data.train_images.max(), 16)
    self.assertEqual(set(data.test_labels), set(range(10)))

  def test_hash_is_of_every_image_and_label(self):
    data = datasets.synthetic('digits', num_train=4, num_test=2)
    again = datasets.synthetic('digits', num_train=4, num_test=2)
    self.assertEqual(data.sha256, again.sha256)
    for name in ('train_images', 'train_labels', 'test_images', 'test_labels'):
      changed = getattr(data, name).copy()
      changed.flat[-1] += 1
      self.assertNotEqual(
        data.sha256, dataclasses.replace(data, **{name: changed}).sha256
      )

  def test_unknown_name_lists_the_right_ones(self):
    with self.assertRaisesRegex(
      ValueError,
      '^`dataset` must be one of digits, fashion_mnist, cifar10, '
      "found 'mnist'[.]$",
    ):
      datasets.load('mnist')

  def test_missing_fashion_mnist_says_where_and_how(self):
    folder = self.create_tempdir().full_path
    with self.assertRaisesRegex(
      FileNotFoundError,
      "^The Fashion-MNIST file 'train-images-idx3-ubyte.gz'"
      f" was not found in '{folder}'[.] Install it .*apt-get install "
      'dataset-fashion-mnist.*--data_dir.*--allow_download[.]$',
    ):
      datasets.load('fashion_mnist', data_dir=folder)

  def test_missing_cifar10_says_where_and_how(self):
    folder = self.create_tempdir().full_path
    with self.assertRaisesRegex(
      FileNotFoundError,
      "^The CIFAR-10 file 'data_batch_1' was not found in "
      f"'{folder}/cifar-10-batches-py'[.] .*--data_dir.*--allow_download[.]$",
    ):
      datasets.load('cifar10', data_dir=folder)

  def _write_fashion(self, folder):
    rng = np.random.default_rng(0)
    written = {}
    for stem, count in (('train', 6), ('t10k', 4)):
      images = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
      labels = rng.integers(0, 10, count, dtype=np.uint8)
      for name, header, array in (
        (f'{stem}-images-idx3-ubyte.gz', [2051, count, 28, 28], images),
        (f'{stem}-labels-idx1-ubyte.gz', [2049, count], labels),
      ):
        with gzip.open(os.path.join(folder, name), 'wb') as f:
          f.write(np.array(header, '>i4').tobytes() + array.tobytes())
      written[stem] = images, labels
    return written

  def test_fashion_mnist_reads_what_was_written(self):
    folder = self.create_tempdir().full_path
    written = self._write_fashion(folder)
    data = datasets.load('fashion_mnist', data_dir=folder)
    np.testing.assert_array_equal(
      data.train_images[..., 0], written['train'][0]
    )
    np.testing.assert_array_equal(data.train_labels, written['train'][1])
    np.testing.assert_array_equal(data.test_images[..., 0], written['t10k'][0])
    np.testing.assert_array_equal(data.test_labels, written['t10k'][1])

  def test_truncated_idx_file_is_refused(self):
    folder = self.create_tempdir().full_path
    self._write_fashion(folder)
    path = os.path.join(folder, 'train-labels-idx1-ubyte.gz')
    with gzip.open(path, 'wb') as f:
      f.write(np.array([2049, 6], '>i4').tobytes() + b'\0' * 5)
    with self.assertRaisesRegex(
      ValueError, 'must hold 6 bytes of data, found 5[.] Download or install'
    ):
      datasets.load('fashion_mnist', data_dir=folder)

  def _write_cifar(self, suffix):
    folder = self.create_tempdir().full_path
    os.mkdir(os.path.join(folder, 'cifar-10-batches-py'))
    for i, name in enumerate(
      [f'data_batch_{i}' for i in range(1, 6)] + ['test_batch']
    ):
      data = np.zeros((2, 3072), np.uint8)
      data[:, :1024] = 10 * i  # Red.
      data[:, 2048:] = 255  # Blue.
      batch = {
        b'data': data,
        b'labels': [i, 9],
        b'filenames': [b'0' + suffix, b'1' + suffix],
      }
      path = os.path.join(folder, 'cifar-10-batches-py', name)
      with open(path, 'wb') as f:
        f.write(pickle.dumps(batch))
    return datasets.load('cifar10', data_dir=folder)

  def test_cifar10_batches_become_images_with_channels_last(self):
    data = self._write_cifar(b'.png')
    self.assertEqual(data.name, 'CIFAR-10')
    self.assertEqual(data.train_images.shape, (10, 32, 32, 3))
    np.testing.assert_array_equal(data.train_images[2, 5, 7], [10, 0, 255])
    np.testing.assert_array_equal(data.train_labels[:4], [0, 9, 1, 9])
    np.testing.assert_array_equal(data.test_images[0, 0, 0], [50, 0, 255])

  def test_reencoded_cifar10_says_so_in_its_name(self):
    self.assertEqual(
      self._write_cifar(b'.jpg').name, 'CIFAR-10 (JPEG re-encoded)'
    )

  def test_channel_statistics_standardize(self):
    data = datasets.synthetic('cifar10', num_train=30, num_test=5)
    mean, stddev = data.channel_statistics
    scaled = (data.train_images - mean) / stddev
    np.testing.assert_allclose(scaled.mean((0, 1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(scaled.std((0, 1, 2)), 1, rtol=1e-5)


if __name__ == '__main__':
  absltest.main()
