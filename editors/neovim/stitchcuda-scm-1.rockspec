rockspec_format = '3.0'
package = 'stitchcuda'
version = 'scm-1'

-- Made from a checkout: `luarocks make` in this folder.
source = {
  url = 'file://.',
}

description = {
  summary = 'Shows what GPU code does, and makes it faster',
  detailed = [[
    A thin plugin over the language server of StitchCUDA: findings, hints and lenses for CUDA and PyTorch, and verified
    optimizations that are reviewed as a diff.
  ]],
  license = 'MIT/Apache-2.0',
  labels = { 'neovim', 'cuda', 'lsp' },
}

dependencies = {
  'lua == 5.1',
}

-- The modules are those in `lua/`.
build = {
  type = 'builtin',
  copy_directories = { 'doc', 'lsp', 'plugin' },
}
