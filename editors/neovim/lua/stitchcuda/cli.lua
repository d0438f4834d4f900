-- Runs the program's other commands, with the settings of `vim.g.stitchcuda`.

local options = require('stitchcuda.options')
local server = require('stitchcuda.server')
local ui = require('stitchcuda.ui')

local M = {}

---@class stitchcuda.Ran
---@field code integer The exit status; see the README of StitchCUDA
---@field out string
---@field err string

--- Where a command about the machine is run: here; or, where the workspace is not trusted, in a folder that names no program.
---@return string folder
function M.place()
  local here = vim.fn.getcwd()
  local root = vim.fs.root(here, { 'stitchcuda.toml', 'compile_commands.json', '.git' }) or here
  return options.is_trusted(root) and here or '/'
end

--- Runs a command, and hands over what it printed.
---@param arguments string[]
---@param done fun(ran: stitchcuda.Ran)
---@param cwd? string
---@return vim.SystemObj? running
function M.run(arguments, done, cwd)
  local command = server.command(arguments)
  local ok, running = pcall(
    vim.system,
    command,
    { text = true, env = server.environment(), cwd = cwd },
    vim.schedule_wrap(function(ran)
      done({ code = ran.code, out = ran.stdout or '', err = ran.stderr or '' })
    end)
  )
  if not ok then
    ui.say(
      ('`%s` could not be started. `:checkhealth stitchcuda` says what to do.'):format(command[1]),
      vim.log.levels.ERROR
    )
    return nil
  end
  return running
end

--- The same, waited for; for completion.
---@param arguments string[]
---@param milliseconds integer
---@return stitchcuda.Ran? ran
function M.wait(arguments, milliseconds)
  local how = { text = true, env = server.environment(), timeout = milliseconds }
  local ok, running = pcall(vim.system, server.command(arguments), how)
  local ran = ok and running:wait()
  return ran and ran.code == 0 and { code = 0, out = ran.stdout or '', err = '' } or nil
end

--- What a command printed, as JSON.
---@param ran stitchcuda.Ran?
---@return table? value
function M.json(ran)
  local ok, value = pcall(vim.json.decode, ran and ran.out or '', { luanil = { object = true, array = true } })
  return ok and type(value) == 'table' and value or nil
end

--- What a command that failed says of it.
---@param ran stitchcuda.Ran
---@return string
function M.trouble(ran)
  local said = vim.trim(ran.err) ~= '' and ran.err or ran.out
  said = vim.trim(said)
  return said ~= '' and said or ('it ended with status %d'):format(ran.code)
end

return M
