-- What the server sends, where the built-in handler would not do.

local M = {}

--- Messages of the server that are kept for `:StitchCuda log`.
local MOST_MESSAGES = 1000

---@type string[]
M.messages = {}

--- The status that the server told last, by client.
---@type table<integer, stitchcuda.Status>
M.status = {}

--- What this plugin can do beyond the built-in client.
---@return lsp.ClientCapabilities
function M.capabilities()
  return {
    workspace = {
      codeLens = { refreshSupport = true },
      -- Neovim 0.11 takes edits of a version, and does not say so.
      workspaceEdit = { documentChanges = true },
    },
    experimental = { stitchcuda = { jobs = true, review = true, status = true } },
  }
end

local levels = { 'error', 'warning', 'info', 'log', 'debug' }
local notified = { vim.log.levels.ERROR, vim.log.levels.WARN, vim.log.levels.INFO, vim.log.levels.DEBUG }

---@type table<string, lsp.Handler>
M.all = {
  ['textDocument/inlayHint'] = function(...)
    require('stitchcuda.hints').on_hints(...)
  end,
  ['workspace/applyEdit'] = function(...)
    return require('stitchcuda.review').on_apply_edit(...)
  end,
  ['window/showMessage'] = function(_, params)
    -- As what the plugin itself says: Neovim 0.11 has `vim.notify` show errors only.
    require('stitchcuda.ui').say((params.message:gsub('^StitchCUDA: ', '')), notified[params.type])
  end,
  ['window/logMessage'] = function(_, params, ctx)
    local time = os.date('%H:%M:%S')
    for line in vim.gsplit(params.message, '\n', { plain = true }) do
      M.messages[#M.messages + 1] = ('%s %s: %s'):format(time, levels[params.type] or 'log', line)
    end
    if #M.messages > MOST_MESSAGES then
      M.messages = vim.list_slice(M.messages, #M.messages - MOST_MESSAGES + 1)
    end
    return vim.lsp.handlers['window/logMessage'](nil, params, ctx)
  end,
  ['stitchcuda/job'] = function(...)
    require('stitchcuda.jobs').on_job(...)
    require('stitchcuda.heat').on_job(...)
    require('stitchcuda.results').on_job(...)
  end,
  ['stitchcuda/review'] = function(...)
    require('stitchcuda.review').on_review(...)
  end,
  ['stitchcuda/status'] = function(_, params, ctx)
    M.status[ctx.client_id] = params
    vim.api.nvim_exec_autocmds('User', { pattern = 'StitchCudaStatus', modeline = false })
  end,
}

-- Neovim 0.12 keeps the lenses that it shows up to date itself.
if vim.lsp.codelens.enable == nil then
  M.all['workspace/codeLens/refresh'] = function(_, _, ctx)
    local client = vim.lsp.get_client_by_id(ctx.client_id)
    for bufnr in pairs(client and client.attached_buffers or {}) do
      require('stitchcuda.attach').refresh_lenses(bufnr)
    end
    return vim.NIL
  end
end

return M
