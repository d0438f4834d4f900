-- StitchCUDA in Neovim. No setup is needed: `vim.lsp.enable('stitchcuda')`, and options in `vim.g.stitchcuda`.

local M = {}

--- What the server does, for a status line: the job that runs, or nothing. It changes with the events `LspProgress` and
--- `User StitchCudaJobs`.
---@return string
function M.status()
  return require('stitchcuda.jobs').status()
end

--- How the server is: its health, toolkit and architecture. Changes with the event `User StitchCudaStatus`.
---@return { health: 'ok'|'warning', message: string?, toolkit: string?, architecture: string?, busy: boolean }?
function M.server_status()
  local client = vim.lsp.get_clients({ name = 'stitchcuda' })[1]
  return client and require('stitchcuda.handlers').status[client.id]
end

--- Sets `vim.g.stitchcuda`, for those who configure all plugins alike. Nothing has to call it.
---@param options? stitchcuda.Options
function M.setup(options)
  vim.g.stitchcuda = options or {}
end

return M
