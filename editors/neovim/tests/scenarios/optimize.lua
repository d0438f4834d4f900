-- A kernel is optimised to a candidate that is reviewed, accepted and saved.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

t.run(function()
  local bufnr = t.open('e.cu')
  t.diagnostic(bufnr, 'static/pow-small-exponent')
  local before = t.text(bufnr)
  local first, last = t.line_of(bufnr, '__global__'), t.line_of(bufnr, 'powf') + 1
  local measured = t.progress('measuring the candidate')
  vim.cmd(('%d,%dStitchCuda optimize'):format(first, last))
  measured()
  t.check(require('stitchcuda').status():find('Optimize'), require('stitchcuda').status())

  local review = t.review()
  t.check(t.text(bufnr) == before, 'nothing is changed before it is accepted')
  local candidate = t.text(review.candidate)
  t.check(candidate:find('x%[i%] %* x%[i%] %* x%[i%]'), candidate)
  t.check(review.said:find('times fewer estimated cycles'), review.said)
  local windows = vim.api.nvim_tabpage_list_wins(review.tab)
  t.check(#windows == 2 and vim.iter(windows):all(function(window)
    return vim.wo[window].diff
  end), 'two windows that show the difference')
  t.check(#vim.lsp.get_clients({ bufnr = review.candidate }) == 0, 'no server looks at the candidate')

  -- Evidence, from the window of the candidate.
  t.press(',e')
  t.check(t.page('report/'):find('x%[i%] %* x%[i%] %* x%[i%]'), 'the report has the diff')
  vim.cmd.close()

  -- Edited under the review: it can't be accepted, until the edit is undone.
  vim.api.nvim_buf_set_lines(bufnr, 0, 0, false, { '// mine' })
  t.press(',a')
  t.wait_for_message('has changed since')
  t.check(t.text(bufnr) == '// mine\n' .. before, 'nothing is made over a changed text')
  vim.api.nvim_buf_call(bufnr, vim.cmd.undo)
  t.check(t.text(bufnr) == before, 'undone')

  t.press(',a')
  t.wait_for_message('was accepted')
  t.check(#vim.api.nvim_list_tabpages() == 1, 'the tab is closed')
  t.check(not vim.api.nvim_buf_is_valid(review.candidate), 'the candidate is gone')
  t.check(t.text(bufnr) == candidate, 'the buffer has the candidate')
  vim.cmd.write()
  -- One step of undo.
  vim.cmd.undo()
  t.check(t.text(bufnr) == before, 'one undo takes it back')
  vim.cmd.redo()
  vim.cmd.write()
  local jobs = require('stitchcuda.jobs')
  t.wait('the decision to be told', function()
    return vim.iter(jobs.list()):any(function(job)
      return job.decision == 'accepted' and job.speedup > 1
    end)
  end)
  vim.cmd('StitchCuda jobs')
  t.check(t.page('jobs'):find('accepted .* times better %(sim:h200%)'), t.page('jobs'))
end)
