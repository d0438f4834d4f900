-- A server is told of its program and of trust once, so another of them starts another server, and the same again does not.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

t.run(function()
  vim.g.stitchcuda = {}
  local buffer, first = t.open('e.cu')
  local function another(than)
    return t.wait('another server', function()
      local now = vim.lsp.get_clients({ name = 'stitchcuda', bufnr = buffer })[1]
      return now and now.initialized and now.id ~= than.id and now
    end)
  end
  vim.g.stitchcuda = { trusted = false }
  local untrusted = another(first)
  t.wait('its status', function()
    local status = require('stitchcuda').server_status()
    return status and status.restricted
  end)
  vim.g.stitchcuda = { trusted = false, heat = false }
  t.pause(500)
  t.check(t.attached(buffer).id == untrusted.id, 'the same server')
  local program = vim.fn.exepath('stitchcuda')
  vim.g.stitchcuda = { cmd = { 'env', 'STITCHCUDA_TEST_MARK=1', program } }
  another(untrusted)
  t.wait('the program of the new option', function()
    return vim.iter(vim.api.nvim_get_proc_children(vim.fn.getpid())):any(function(process)
      local file = io.open(('/proc/%d/environ'):format(process))
      local environment = file and file:read('*a') or ''
      return environment:find('STITCHCUDA_TEST_MARK=1', 1, true) ~= nil
    end)
  end)
  t.wait('its status', function()
    local status = require('stitchcuda').server_status()
    return status and not status.restricted
  end)
end)
