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

---@class stitchcuda.Status See `stitchcuda/status` in editors/PROTOCOL.md
---@field health 'ok'|'warning'
---@field message? string What is wrong, and what to do
---@field toolkit? string What compiles, once something was compiled
---@field architecture? string What it compiles for
---@field device? string Where kernels run; `none: ` and the reason where they can't
---@field engine? string What plans and codes; `none: ` and the reason where nothing can
---@field busy boolean Whether a job runs
---@field paused boolean Whether nothing is compiled by itself
---@field restricted boolean Whether the workspace is not trusted

--- How the server of this buffer is, or where it has none, another one. Changes with the event `User StitchCudaStatus`.
---@return stitchcuda.Status?
function M.server_status()
  local name = 'stitchcuda'
  local client = vim.lsp.get_clients({ name = name, bufnr = 0 })[1] or vim.lsp.get_clients({ name = name })[1]
  return client and require('stitchcuda.handlers').status[client.id]
end

--- Sets `vim.g.stitchcuda`, for those who configure all plugins alike. Nothing has to call it.
---@param options? stitchcuda.Options
function M.setup(options)
  vim.g.stitchcuda = options or {}
end

return M
