-- A plan of which nothing is tried; verdicts about another file and about the text of now; both shown beside the text.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

t.run(function()
  local bufnr = t.open('e.cu')
  t.diagnostic(bufnr, 'static/pow-small-exponent')
  local before = t.text(bufnr)
  local first, last = t.line_of(bufnr, '__global__'), t.line_of(bufnr, 'powf') + 1
  vim.cmd(('%d,%dStitchCuda plan'):format(first, last))
  t.wait_for_message('The plan has .* nothing was attempted: 1%. ')
  local plan = t.page('plan/')
  t.check(plan:find('\n1%. ') and not plan:find('attempt 1'), plan)
  t.check(t.text(bufnr) == before, 'nothing is edited')
  local jobs = require('stitchcuda.jobs')
  local job = vim.iter(jobs.list()):find(function(job)
    return job.kind == 'plan'
  end)
  t.check(vim.list_contains(vim.fn.getcompletion('StitchCuda plan ', 'cmdline'), job.run), 'the run is kept')
  vim.cmd.only({ bang = true })
  vim.api.nvim_set_current_buf(bufnr)
  local window = vim.api.nvim_get_current_win()

  -- Another file against this one.
  vim.fn.writefile(vim.split((before:gsub('powf%(x%[i%], 3%.0f%)', 'x[i] * x[i]')), '\n'), 'wrong.cu')
  vim.api.nvim_win_set_cursor(0, { t.line_of(bufnr, 'powf'), 0 })
  vim.cmd('StitchCuda verify wrong.cu')
  t.wait_for_message('wrong%.cu does not do what e%.cu does: ')
  t.check(t.page('verdict'):find('\nCompared\n'), t.page('verdict'))
  t.check(vim.api.nvim_get_current_win() == window, 'the cursor stays in the text')

  -- The text of now against the file on the disk, and against the last commit.
  vim.cmd('StitchCuda verify saved')
  t.wait_for_message('nothing was changed since the file was saved')
  local line = t.line_of(bufnr, 'powf')
  local text = vim.api.nvim_buf_get_lines(bufnr, line - 1, line, false)[1]
  vim.api.nvim_buf_set_lines(
    bufnr,
    line - 1,
    line,
    false,
    { (text:gsub('powf%(x%[i%], 3%.0f%)', 'x[i] * x[i] * x[i]')) }
  )
  vim.cmd('StitchCuda verify saved')
  t.wait_for_message('e%.cu as it is now does what e%.cu as it was saved does')
  vim.cmd('StitchCuda verify committed')
  t.wait('the end of it', function()
    return vim.iter(jobs.list()):any(function(one)
      return one.state == 'failed' and one.message:find('last commit could not be read with git')
    end)
  end)
  vim.cmd('StitchCuda verify')
  t.wait_for_message('say against what')
  vim.cmd('StitchCuda jobs')
  t.check(t.page('jobs'):find('\ncorrect .*Verify e%.cu'), t.page('jobs'))
end)
