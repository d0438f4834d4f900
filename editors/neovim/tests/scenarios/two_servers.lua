-- Another server gives hints in the same buffer, and answers for old texts late: no error, and the hints of both are shown.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

--- A server that marks the end of each line, after a while.
---@param late integer Milliseconds
local function other(late)
  return function(dispatchers)
    local texts, closing = {}, false
    local function answer(method, params)
      if method == 'initialize' then
        return { capabilities = { inlayHintProvider = true, textDocumentSync = 1, positionEncoding = 'utf-8' } }
      elseif method == 'textDocument/inlayHint' then
        local hints = {}
        for number, line in ipairs(texts[params.textDocument.uri]) do
          hints[number] = { position = { line = number - 1, character = #line }, label = 'other' }
        end
        return hints
      end
    end
    local id = 0
    return {
      request = function(method, params, callback, replied)
        id = id + 1
        local mine, result = id, answer(method, params)
        vim.defer_fn(function()
          if replied then
            replied(mine)
          end
          callback(nil, result)
        end, method == 'textDocument/inlayHint' and late or 0)
        return true, mine
      end,
      notify = function(method, params)
        if method == 'textDocument/didOpen' then
          texts[params.textDocument.uri] = vim.split(params.textDocument.text, '\n', { plain = true })
        elseif method == 'textDocument/didChange' then
          texts[params.textDocument.uri] = vim.split(params.contentChanges[1].text, '\n', { plain = true })
        elseif method == 'exit' then
          closing = true
          dispatchers.on_exit(0, 0)
        end
        return true
      end,
      is_closing = function()
        return closing
      end,
      terminate = function()
        closing = true
      end,
    }
  end
end

local function others_hints(bufnr)
  local namespace = vim.api.nvim_get_namespaces()['nvim.lsp.inlayhint']
  return vim.api.nvim_buf_get_extmarks(bufnr, namespace, 0, -1, {})
end

t.run(function()
  vim.lsp.config('other', { cmd = other(400), filetypes = { 'cuda' }, root_dir = vim.fn.getcwd() })
  vim.lsp.enable('other')
  local bufnr = t.open('e.cu')
  vim.cmd.write()
  t.hint(bufnr, '__global__')
  t.wait('the hints of the other', function()
    vim.cmd.redraw()
    return #others_hints(bufnr) >= vim.api.nvim_buf_line_count(bufnr)
  end)
  -- Lines become shorter and fewer, faster than the other answers, and the screen is drawn all the while.
  for round = 1, 30 do
    local last = vim.api.nvim_buf_line_count(bufnr) - 1
    vim.api.nvim_buf_set_lines(bufnr, last, last + 1, false, { ('// %s'):format(('x'):rep(60 - 2 * round)) })
    if round % 10 == 0 then
      vim.api.nvim_buf_set_lines(bufnr, last, last + 1, false, {})
    end
    t.pause(30)
    vim.cmd.redraw()
    t.check(vim.v.errmsg == '', vim.v.errmsg)
  end
  -- The kernel was not touched, so what is known of it still holds.
  t.check(t.hint(bufnr, '__global__'):find('registers'), 'our hint')
  t.wait('the hints of the other', function()
    vim.cmd.redraw()
    return #others_hints(bufnr) >= vim.api.nvim_buf_line_count(bufnr)
  end)
end)
