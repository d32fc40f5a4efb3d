# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings of the documentation site, which `make docs` builds with Sphinx.

The site's sources are the documents where they lie, from the project's folder
on, so that a link works here as it does in the repository.
"""

from docutils import nodes
from docutils.utils.math import latex2mathml
from docutils.utils.math import MathError
from sphinx.util import logging

from experiments.common import quiet
import tff_autotune_secagg as autotune

quiet.silence()

project = 'tff_autotune_secagg'
author = 'The tff_autotune_secagg Authors'
copyright = f'2026 {author}'
version = release = autotune.__version__

extensions = ['myst_nb', 'sphinx.ext.autodoc', 'sphinx.ext.napoleon']
include_patterns = [
  '*.md',
  'docs/*.md',
  'docs/*.ipynb',
  'docs/api/*.rst',
  'experiments/README.md',
  'experiments/*/README.md',
]
# Folders that Sphinx would search for the patterns above.
exclude_patterns = ['.*', 'build', 'dist', 'results', 'tests']

html_theme = 'furo'
# The side bar is narrower than the name, which may break at the tag.
html_title = f'tff_autotune_<wbr>secagg {version}'
html_show_sourcelink = False
html_copy_source = False
# Read from a file, a page may not fetch the others.
html_show_search_summary = False
html_math_renderer = 'mathml'

myst_enable_extensions = ['dollarmath']
myst_fence_as_directive = ['math']
myst_heading_anchors = 4
# Its outputs are committed.
nb_execution_mode = 'off'

# A name in backticks is a link where it is one of the package.
default_role = 'py:obj'
autoclass_content = 'both'
autodoc_default_options = {'members': True, 'member-order': 'bysource'}
autodoc_preserve_defaults = True
maximum_signature_line_length = 80
napoleon_custom_sections = [
  'At clients',
  'At server',
  'Decoding',
  'Encoding',
  'Guarantees',
  'Limits',
  'Measurements',
  'Params',
  'Randomness',
  'Reference',
  'Secure signals',
  'State',
  'Types',
]
napoleon_use_ivar = True

_logger = logging.getLogger(__name__)


def _skip_public(app, kind, name, member, skip, options):
  """Leaves to the page of public names what that page holds."""
  del app, options  # Unused.
  is_public = kind == 'module' and getattr(autotune, name, None) is member
  return skip or is_public or None


def _find_public(app, env, node, content):
  """Resolves a name that is imported from the package itself."""
  if node.get('refdomain') != 'py':
    return None
  return env.get_domain('py').resolve_xref(
    env,
    node['refdoc'],
    app.builder,
    'obj',
    f'tff_autotune_secagg.{node["reftarget"]}',
    node,
    content,
  )


def _visit_math(translator, node):
  """Writes MathML, which browsers show by themselves, without scripts."""
  try:
    mathml = latex2mathml.tex2mathml(
      node.astext(), as_block=isinstance(node, nodes.math_block)
    )
  except MathError as error:
    _logger.warning('%s', error, location=node)
  else:
    translator.body.append(mathml)
  raise nodes.SkipNode


def _name_overview(app, page, template, context, doctree):
  """Gives the README's page another title than the site's own, beside it."""
  del app, template, doctree  # Unused.
  if page == 'README':
    context['title'] = 'Overview'


def setup(app):
  """Is what Sphinx calls."""
  app.connect('html-page-context', _name_overview)
  app.connect('autodoc-skip-member', _skip_public)
  app.connect('missing-reference', _find_public)
  app.add_html_math_renderer('mathml', (_visit_math, None), (_visit_math, None))
