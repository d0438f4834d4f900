-- Commands of the server, with what their answers are for.

local ui = require('stitchcuda.ui')

local M = {}

--- `RequestFailed` of LSP 3.17: a command that was right can't be fulfilled, which the server tells the person itself.
local REQUEST_FAILED = -32803

--- The server of a buffer.
---@param bufnr integer
---@return vim.lsp.Client?
function M.client(bufnr)
  local client = vim.lsp.get_clients({ name = 'stitchcuda', bufnr = bufnr })[1]
  if not client then
    local refused = require('stitchcuda.server').refused
    local hint = refused and refused:gsub('%.$', '') .. '; `:StitchCuda restart` tries again'
      or vim.lsp.is_enabled('stitchcuda') and '`:checkhealth stitchcuda` may say why'
      or "say `vim.lsp.enable('stitchcuda')`"
    ui.say('no server is attached to this buffer; ' .. hint .. '.', vim.log.levels.WARN)
  end
  return client
end

--- Sends a request of the server's own; what is wrong is said.
---@param client vim.lsp.Client
---@param method string
---@param params table
---@param done fun(result: any)
function M.ask(client, method, params, done)
  client:request(method, params, function(err, result)
    if err then
      ui.say(err.message, vim.log.levels.ERROR)
    else
      done(result)
    end
  end)
end

--- Sends a command.
---@param client vim.lsp.Client
---@param command lsp.Command|{ command: string, arguments: any[] }
---@param bufnr integer
---@param done fun(result: any)
function M.execute(client, command, bufnr, done)
  local params = { command = command.command, arguments = command.arguments }
  client:request('workspace/executeCommand', params, function(err, result)
    if not err then
      done(result)
    elseif err.code ~= REQUEST_FAILED then
      ui.say(err.message, vim.log.levels.ERROR)
    end
  end, bufnr)
end

--- A job was begun.
---@param result { job: integer }?
function M.begun(result)
  ui.say(('job %s is at work; `:StitchCuda jobs` shows how far it is.'):format(result and result.job or '?'))
end

---@param result { markdown: string }?
local function float(result)
  if result and result.markdown then
    local lines = vim.lsp.util.convert_input_to_markdown_lines({ kind = 'markdown', value = result.markdown })
    vim.lsp.util.open_floating_preview(lines, 'markdown', { focus_id = 'stitchcuda', max_width = 100 })
  end
end

--- A command from a code lens or a code action.
---@param command lsp.Command
---@param context { bufnr: integer, client_id: integer }
function M.command(command, context)
  local client = vim.lsp.get_client_by_id(context.client_id)
  if not client then
    return
  end
  local bufnr = context.bufnr
  local begins = command.command == 'stitchcuda.optimize' or command.command == 'stitchcuda.plan'
  M.execute(client, command, bufnr, begins and M.begun or float)
  -- Neovim 0.11 takes a lens away when it is run.
  require('stitchcuda.attach').refresh_lenses(bufnr)
end

--- A range of lines, or the place of the cursor, as the protocol has it.
---@param client vim.lsp.Client
---@param bufnr integer
---@param first? integer Line, from 1
---@param last? integer
---@return lsp.Range
function M.range(client, bufnr, first, last)
  if first and last then
    local text = vim.api.nvim_buf_get_lines(bufnr, last - 1, last, false)[1] or ''
    local column = vim.str_utfindex(text, client.offset_encoding)
    return { start = { line = first - 1, character = 0 }, ['end'] = { line = last - 1, character = column } }
  end
  local position = vim.lsp.util.make_position_params(0, client.offset_encoding).position
  return { start = position, ['end'] = position }
end

return M
