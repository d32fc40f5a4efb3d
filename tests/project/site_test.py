# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the documentation site that `make docs` builds."""

import contextlib
import io
import pathlib
import re
import shutil
import tempfile
import urllib.parse

from absl.testing import absltest
import bs4
import pytest
from sphinx.cmd import build

import tff_autotune_secagg as autotune

_PROJECT = pathlib.Path(__file__).parents[2]
_PACKAGE = 'tff_autotune_secagg'
# Public names that are modules, with pages of their own.
_FOLDERS = {'programs', 'simulation', 'tuning'}
# Pages that Sphinx adds, to which its own search box and signatures lead.
_ADDED = {'genindex.html', 'py-modindex.html', 'search.html'}


def _read(path: pathlib.Path) -> bs4.BeautifulSoup:
  return bs4.BeautifulSoup(path.read_text(encoding='utf-8'), 'html.parser')


def _pages(folder: pathlib.Path) -> dict[pathlib.Path, bs4.BeautifulSoup]:
  return {path: _read(path) for path in sorted(folder.rglob('*.html'))}


def _targets(page: bs4.BeautifulSoup) -> list[str]:
  """What a page links to, shows or loads from the site itself."""
  found = [tag.get('href') or tag.get('src') for tag in page.find_all(True)]
  return [url for url in found if url and not urllib.parse.urlsplit(url).scheme]


def _broken_targets(pages: dict[pathlib.Path, bs4.BeautifulSoup]) -> list[str]:
  """Links to files that are not there, or to places that no page has."""
  places = {
    path: {'', 'top', *(tag['id'] for tag in page.find_all(id=True))}
    for path, page in pages.items()
  }
  broken = []
  for path, page in pages.items():
    for target in _targets(page):
      url = urllib.parse.urlsplit(target)
      name = urllib.parse.unquote(url.path)
      file = (path.parent / name).resolve() if name else path
      if not file.is_file():
        broken.append(f'{path.name}: {target}')
      elif file in places:
        if urllib.parse.unquote(url.fragment) not in places[file]:
          broken.append(f'{path.name}: {target}')
  return broken


def _public_modules() -> set[str]:
  """Names of the package's public modules."""
  names = set()
  for path in (_PROJECT / _PACKAGE).rglob('*.py'):
    parts = path.relative_to(_PROJECT).with_suffix('').parts
    names.add('.'.join(parts[:-1] if parts[-1] == '__init__' else parts))
  return {name for name in names if '._' not in name}


@pytest.mark.slow
class SiteTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    temporary = pathlib.Path(tempfile.mkdtemp()).resolve()
    cls.addClassCleanup(shutil.rmtree, temporary)
    cls._folder = temporary / 'html'
    # In this process, which has loaded what the API is read from.
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
      with contextlib.redirect_stderr(output):
        status = build.main(
          ['-c', str(_PROJECT / 'docs'), '-W', '--keep-going', '-q', '-E']
          + [str(_PROJECT), str(cls._folder)]
        )
    if status:
      raise AssertionError(output.getvalue())
    cls._pages = _pages(cls._folder)

  def _page(self, name: str) -> bs4.BeautifulSoup:
    return self._pages[self._folder / name]

  def test_links_lead_somewhere(self):
    self.assertEmpty(_broken_targets(self._pages))

  def test_no_page_has_the_title_of_the_site_twice(self):
    for path, page in self._pages.items():
      title, _, rest = page.find('title').get_text().partition(' - ')
      self.assertNotIn(title, rest, path)
    overview = self._page('README.html').find('title').get_text()
    self.assertStartsWith(overview, f'Overview - {_PACKAGE} ')

  def test_index_links_every_page(self):
    index = self._page('index.html').find('article')
    linked = {self._folder / target for target in _targets(index)}
    added = {self._folder / name for name in _ADDED | {'index.html'}}
    self.assertEqual(linked & set(self._pages), set(self._pages) - added)

  def test_api_has_every_public_name_and_the_main_one_first(self):
    page = self._page('docs/api/public.html')
    ids = [tag['id'] for tag in page.find_all('dt', id=True)]
    self.assertEqual(ids[0], f'{_PACKAGE}.autotuned_secure_aggregator')
    objects = {name for name in autotune.__all__ if not name.startswith('__')}
    self.assertContainsSubset(
      {f'{_PACKAGE}.{name}' for name in objects - _FOLDERS},
      ids,
    )

  def test_api_has_every_public_module(self):
    found = {
      tag['id'].removeprefix('module-')
      for page in self._pages.values()
      for tag in page.find_all(id=re.compile('^module-'))
    }
    self.assertEqual(found, _public_modules())

  def test_docstrings_are_read_as_they_are_meant(self):
    wrong = []
    for path in sorted((self._folder / 'docs' / 'api').glob('*.html')):
      article = self._pages[path].find('article')
      # What an indentation or a lone letter in a docstring turns into where
      # nothing says that it is a block of its own.
      wrong += article.select('blockquote, dl[class=simple], ol[class*=alpha]')
      wrong += article.find_all(string=re.compile(r'[^`]`[^`]|\*\*\w+\*\*'))
    self.assertEmpty(wrong)

  def test_powers_keep_their_asterisks(self):
    text = self._page('docs/api/public.html').get_text()
    self.assertIn('int in 2 .. 2**30', text)
    self.assertIn('2**63 - 1', text)
    self.assertNotIn('230', text)

  def test_formulas_and_tables_are_shown(self):
    page = self._page('docs/mathematics.html').find('article')
    source = (_PROJECT / 'docs' / 'mathematics.md').read_text(encoding='utf-8')
    self.assertLen(
      page.select('math[display=block]'), source.count('\n```math\n')
    )
    self.assertGreater(len(page.find_all('math')), 100)
    self.assertLen(
      page.find_all('table'),
      len(re.findall(r'^\|[-|]+\|$', source, re.MULTILINE)),
    )
    for math in page.find_all('math'):
      math.extract()
    self.assertEmpty(page.find_all(string=re.compile(r'\$|\\\w+|\|--')))


class CheckerTest(absltest.TestCase):
  """The check of the links can fail."""

  def test_finds_broken_links(self):
    folder = pathlib.Path(self.create_tempdir().full_path).resolve()
    (folder / 'a.html').write_text(
      '<p id="here"><a href="b.html">1</a> <a href="b.html#there">2</a>'
      ' <a href="#here">3</a> <img src="no.png"> <a href="#nowhere">4</a>'
      ' <a href="b.html#here">5</a> <a href="https://a.org/no.html">6</a>'
    )
    (folder / 'b.html').write_text('<h1 id="there">B</h1>')
    self.assertEqual(
      _broken_targets(_pages(folder)),
      ['a.html: no.png', 'a.html: #nowhere', 'a.html: b.html#here'],
    )


if __name__ == '__main__':
  absltest.main()
