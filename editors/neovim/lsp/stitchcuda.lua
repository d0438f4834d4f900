-- The server's configuration, found by `vim.lsp.enable('stitchcuda')`.
--
-- Everything that depends on `vim.g.stitchcuda` is looked up when a server starts, so the order of the lines in an init.lua
-- does not matter.

---@type vim.lsp.Config
return {
  cmd = function(dispatchers)
    return require('stitchcuda.server').start(dispatchers)
  end,
  filetypes = { 'cuda', 'python' },
  root_markers = { { 'stitchcuda.toml', 'compile_commands.json' }, '.git' },
  -- The name that VS Code has for it, which the server's other clients send.
  get_language_id = function(_, filetype)
    return filetype == 'cuda' and 'cuda-cpp' or filetype
  end,
  capabilities = require('stitchcuda.handlers').capabilities(),
  handlers = require('stitchcuda.handlers').all,
  -- Filled from `vim.g.stitchcuda` when a server starts; it must be there for that.
  settings = { stitchcuda = vim.empty_dict() },
  before_init = function(params, config)
    require('stitchcuda.server').before_init(params, config)
  end,
  on_exit = function(code, signal, client_id)
    require('stitchcuda.server').on_exit(code, signal, client_id)
  end,
}
