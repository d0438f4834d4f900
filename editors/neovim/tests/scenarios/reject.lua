-- A candidate is rejected, by its map and by closing the tab; what its run leaves can be read afterwards.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

t.run(function()
  local bufnr = t.open('e.cu')
  t.diagnostic(bufnr, 'static/pow-small-exponent')
  local before = t.text(bufnr)
  vim.api.nvim_win_set_cursor(0, { t.line_of(bufnr, 'powf'), 4 })
  vim.cmd('StitchCuda optimize')
  local run
  for _, way in ipairs({ ',r', ':tabclose<cr>' }) do
    local review = t.review()
    run = review.run
    t.press(way)
    t.wait('the review to be closed', function()
      return #require('stitchcuda.review').list() == 0
    end)
    t.check(not vim.api.nvim_buf_is_valid(review.candidate), 'the candidate is gone')
    t.check(#vim.api.nvim_list_tabpages() == 1, 'the tab is closed')
    t.check(t.text(bufnr) == before, 'nothing is changed')
    t.check(vim.api.nvim_get_current_buf() == bufnr, 'back in the file')
    t.wait('the decision', function()
      return require('stitchcuda.jobs').list()[1].decision == 'rejected'
    end)
    -- The run stays, and so it can be reviewed again.
    if way == ',r' then
      vim.cmd('StitchCuda review')
    end
  end

  vim.cmd('StitchCuda plan ' .. run)
  local plan = t.page('plan/')
  t.check(plan:find('Plan 1') and plan:find('attempt 1: '), plan)
  vim.cmd.close()
  for _, subcommand in ipairs({ 'plan', 'report', 'review' }) do
    local runs = vim.fn.getcompletion(('StitchCuda %s '):format(subcommand), 'cmdline')
    t.check(vim.deep_equal(runs, { run }), vim.inspect(runs))
  end
  vim.cmd('StitchCuda report ' .. run)
  t.check(t.page('report/'):find('x%[i%] %* x%[i%] %* x%[i%]'), 'the report has the diff')
end)
