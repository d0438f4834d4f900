-- A workspace that is not trusted: the static rules look at it, and nothing of it is run.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

vim.g.stitchcuda = {
  trusted = function(root)
    return not vim.endswith(root or '', '/work')
  end,
}

t.run(function()
  local bufnr, client = t.open('e.cu')
  t.diagnostic(bufnr, 'static/pow-small-exponent')
  vim.cmd.write()
  vim.api.nvim_win_set_cursor(0, { t.line_of(bufnr, 'powf'), 4 })
  vim.cmd('StitchCuda optimize')
  t.wait_for_message('not trusted')
  t.pause(300)
  local said = vim.tbl_filter(function(text)
    return text:find('Nothing was optimised') ~= nil
  end, t.said)
  t.check(#said == 1, 'it is said once: ' .. vim.inspect(said))
  vim.cmd('StitchCuda profile')
  t.wait_for_message('Nothing was profiled')
  vim.cmd('StitchCuda profile --device sim:h200')
  t.wait_for_message('none of its programs is run')
  t.check(#require('stitchcuda.jobs').list() == 0, 'no job')
  t.check(#vim.api.nvim_get_proc_children(vim.fn.getpid()) == 1, 'no process but the server')
  t.check(next(require('stitchcuda.hints').shown(bufnr)) == nil, 'no numbers of a compiler')
  -- The machine is looked at without what the folder brings along.
  vim.fn.mkdir('.venv/bin', 'p')
  vim.fn.writefile({}, '.venv/pyvenv.cfg')
  for _, name in ipairs({ 'python', 'python3' }) do
    vim.fn.writefile({ '#!/bin/sh', 'touch "$(dirname "$0")/was-run"' }, '.venv/bin/' .. name)
    vim.fn.setfperm('.venv/bin/' .. name, 'rwxr-xr-x')
  end
  vim.cmd('StitchCuda doctor')
  t.check(t.page('doctor'):find('sandbox'), t.page('doctor'))
  vim.cmd.close()
  vim.cmd('checkhealth stitchcuda')
  vim.cmd.bdelete()
  t.check(vim.fn.filereadable('.venv/bin/was-run') == 0, 'a program of the folder was run')
  -- The same server is asked to compile nothing.
  local answer = client:request_sync('workspace/executeCommand', {
    command = 'stitchcuda.recompile',
    arguments = { vim.uri_from_bufnr(bufnr) },
  }, 10000, bufnr)
  t.check(answer.err and answer.err.message:find('trusted'), vim.inspect(answer))
end)
