-- A candidate is rejected: by its map, and by closing the tab.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

t.run(function()
  local bufnr = t.open('e.cu')
  t.diagnostic(bufnr, 'static/pow-small-exponent')
  local before = t.text(bufnr)
  vim.api.nvim_win_set_cursor(0, { t.line_of(bufnr, 'powf'), 4 })
  for _, way in ipairs({ ',r', ':tabclose<cr>' }) do
    vim.cmd('StitchCuda optimize')
    local review = t.review()
    t.press(way)
    t.wait('the review to be closed', function()
      return #require('stitchcuda.review').list() == 0
    end)
    t.check(not vim.api.nvim_buf_is_valid(review.candidate), 'the candidate is gone')
    t.check(#vim.api.nvim_list_tabpages() == 1, 'the tab is closed')
    t.check(t.text(bufnr) == before, 'nothing is changed')
    t.check(vim.api.nvim_get_current_buf() == bufnr, 'back in the file')
  end
end)
