-- StitchCUDA in Neovim. No setup is needed: `vim.lsp.enable('stitchcuda')`, and options in `vim.g.stitchcuda`.

local M = {}

--- For a status line: a candidate that waits for Normal mode, else the job that runs, else nothing. Status lines are drawn again when
--- it changes.
---@return string
function M.status()
  local review = require('stitchcuda.review')
  local waiting = vim.iter(review.list()):find(function(one)
    return not one.tab
  end)
  if waiting then
    return ('a candidate for %s waits for Normal mode'):format(waiting.target)
  end
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
