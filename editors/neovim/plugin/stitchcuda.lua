-- What is there before anything of the plugin is used: the command, and a few events. The rest is loaded on use.

if vim.g.loaded_stitchcuda then
  return
end
vim.g.loaded_stitchcuda = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.notify_once('StitchCUDA needs Neovim 0.11 or later.', vim.log.levels.ERROR)
  return
end

vim.api.nvim_create_user_command('StitchCuda', function(arguments)
  require('stitchcuda.commands').run(arguments)
end, {
  nargs = '*',
  range = true,
  bang = true,
  complete = function(lead, line)
    return require('stitchcuda.commands').complete(lead, line)
  end,
  desc = 'StitchCUDA: optimize, plan, verify, profile, jobs and more',
})

for name, link in pairs({
  StitchCudaHint = 'LspInlayHint',
  StitchCudaHeat1 = 'Comment',
  StitchCudaHeat2 = 'DiagnosticInfo',
  StitchCudaHeat3 = 'DiagnosticWarn',
  StitchCudaHeat4 = 'DiagnosticError',
}) do
  vim.api.nvim_set_hl(0, name, { link = link, default = true })
end

local group = vim.api.nvim_create_augroup('stitchcuda', {})

---@param callback fun(client: vim.lsp.Client, event: table)
---@return fun(event: table)
local function ours(callback)
  return function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'stitchcuda' then
      callback(client, event)
    end
  end
end

vim.api.nvim_create_autocmd('LspAttach', {
  group = group,
  callback = ours(function(client, event)
    require('stitchcuda.attach').attach(client, event.buf)
  end),
})
vim.api.nvim_create_autocmd('LspDetach', {
  group = group,
  callback = ours(function(_, event)
    require('stitchcuda.attach').detach(event.buf)
  end),
})
-- A new value of `vim.g.stitchcuda` takes effect at once. Scheduled, since a value that goes is told while it is still there.
vim.cmd([[
  function! s:changed(dict, key, change) abort
    lua vim.schedule(function() require('stitchcuda.attach').options_changed() end)
  endfunction
  call dictwatcheradd(g:, 'stitchcuda', function('s:changed'))
]])

for _, name in ipairs({ 'stitchcuda.showKernel', 'stitchcuda.explain', 'stitchcuda.optimize', 'stitchcuda.plan' }) do
  vim.lsp.commands[name] = function(command, context)
    require('stitchcuda.requests').command(command, context)
  end
end
