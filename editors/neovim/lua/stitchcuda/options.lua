-- `vim.g.stitchcuda`: what it may hold, what holds where nothing is said, and what is wrong with it.

local M = {}

--- Maps of a review; false for none.
---@class stitchcuda.ReviewOptions
---@field accept? string|false Takes the candidate over. Default `<localleader>a`.
---@field reject? string|false Leaves the code as it is. Default `<localleader>r`.
---@field evidence? string|false Shows the run's report. Default `<localleader>e`.

---@class stitchcuda.Options
---@field cmd? string|string[] The program, as a path or a name in `PATH`, or a command line without `lsp`. By default the one
--- beside the plugin, then the one in `PATH`.
---@field settings? stitchcuda.Config The server's settings.
---@field trusted? boolean|fun(root: string?): boolean Whether programs of the workspace may be run. Default true. Where it is false
--- there are findings of the static rules only.
---@field inlay_hints? boolean Turn Neovim's inlay hints on where the server is attached. Default true.
---@field code_lenses? boolean Show code lenses. Default true.
---@field heat? boolean Show heat after a profile. Default true.
---@field restart? boolean Start the server again when it died. Default true.
---@field review? stitchcuda.ReviewOptions Maps of a review.

---@type stitchcuda.Options
local defaults = {
  settings = {},
  trusted = true,
  inlay_hints = true,
  code_lenses = true,
  heat = true,
  restart = true,
  review = { accept = '<localleader>a', reject = '<localleader>r', evidence = '<localleader>e' },
}

---@type table<string, string[]>
local types = {
  cmd = { 'string', 'table' },
  settings = { 'table' },
  trusted = { 'boolean', 'function' },
  inlay_hints = { 'boolean' },
  code_lenses = { 'boolean' },
  heat = { 'boolean' },
  restart = { 'boolean' },
  review = { 'table' },
}

---@return table given, string[] mistakes
local function read()
  local given = vim.g.stitchcuda
  if type(given) == 'function' then
    local ok, result = pcall(given)
    if not ok then
      return {}, { ('the function in `vim.g.stitchcuda` failed: %s'):format(result) }
    end
    given = result
  end
  if given == nil then
    return {}, {}
  end
  if type(given) ~= 'table' then
    return {}, { ('`vim.g.stitchcuda` is a %s; a table is expected'):format(type(given)) }
  end
  local kept, mistakes = {}, {}
  for key, value in pairs(given) do
    local expected = types[key]
    if not expected then
      mistakes[#mistakes + 1] = ('`%s` is no option'):format(key)
    elseif not vim.list_contains(expected, type(value)) then
      mistakes[#mistakes + 1] = ('`%s` is a %s; a %s is expected'):format(
        key,
        type(value),
        table.concat(expected, ' or ')
      )
    else
      kept[key] = value
    end
  end
  table.sort(mistakes)
  return kept, mistakes
end

--- The options, with the default of each that is not set or can't be used.
---@return stitchcuda.Options
function M.get()
  local given, mistakes = read()
  for _, mistake in ipairs(mistakes) do
    vim.notify_once('StitchCUDA: ' .. mistake .. '. See `:help stitchcuda-options`.', vim.log.levels.WARN)
  end
  return vim.tbl_deep_extend('force', defaults, given)
end

--- What is wrong with them, in sentences without an end.
---@return string[]
function M.mistakes()
  return select(2, read())
end

--- Whether programs of the workspace at `root` may be run.
---@param root string?
---@return boolean
function M.is_trusted(root)
  local trusted = M.get().trusted
  if type(trusted) ~= 'function' then
    return trusted ~= false
  end
  local ok, answer = pcall(trusted, root)
  -- Who wanted to decide, and could not, has not said yes.
  return ok and answer == true
end

return M
