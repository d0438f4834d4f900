-- The server is killed in the middle of a job: it is started again, and goes on with the text as it is now.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

t.run(function()
  local bufnr, client = t.open('e.cu')
  t.diagnostic(bufnr, 'static/pow-small-exponent')
  vim.api.nvim_win_set_cursor(0, { t.line_of(bufnr, 'powf'), 4 })
  local measuring = t.progress('measuring the reference')
  vim.cmd('StitchCuda optimize')
  measuring()
  local children = vim.api.nvim_get_proc_children(vim.fn.getpid())
  t.check(#children == 1, vim.inspect(children))
  vim.uv.kill(children[1], 'sigkill')
  t.wait_for_message('ended by signal 9 and is started again')
  t.wait_for_message('ended, and with it: Optimize energy%. What a run had found until then is kept')
  t.check(require('stitchcuda.jobs').list()[1].state == 'failed', 'its job has failed')
  local again = t.wait('another server', function()
    local now = vim.lsp.get_clients({ name = 'stitchcuda', bufnr = bufnr })[1]
    return now and now.id ~= client.id and now.initialized and now
  end)
  vim.api.nvim_buf_set_lines(bufnr, 0, 0, false, { '// a line more' })
  t.wait('the finding at its new place', function()
    return t.diagnostic(bufnr, 'static/pow-small-exponent').lnum == t.line_of(bufnr, 'powf') - 1
  end)
  -- Restarted on purpose, it is another one, and nobody is told of a death.
  local said = #t.said
  vim.cmd('StitchCuda restart')
  local third = t.wait('a third server', function()
    local now = vim.lsp.get_clients({ name = 'stitchcuda', bufnr = bufnr })[1]
    return now and now.id ~= again.id and now.initialized and now
  end)
  t.check(#t.said == said, vim.inspect(t.said))
  t.diagnostic(bufnr, 'static/pow-small-exponent')
  -- But what ran is not taken without a word.
  vim.cmd('StitchCuda optimize')
  local jobs = require('stitchcuda.jobs')
  t.wait('its job', function()
    return vim.iter(jobs.running()):any(function(job)
      return job.kind == 'optimize'
    end)
  end)
  t.said = {}
  vim.cmd('StitchCuda restart')
  t.wait_for_message('ended, and with it: Optimize energy')
  t.wait('a fourth server', function()
    local now = vim.lsp.get_clients({ name = 'stitchcuda', bufnr = bufnr })[1]
    return now and now.id ~= third.id and now.initialized
  end)
  t.check(not vim.iter(jobs.running()):any(function(job)
    return job.kind == 'optimize'
  end), vim.inspect(jobs.running()))
end)
