-- The other subcommands, their completion, the health check and the help.

local t = dofile(vim.env.STITCHCUDA_TEST_HARNESS)

t.run(function()
  local names = vim.fn.getcompletion('StitchCuda ', 'cmdline')
  for _, name in ipairs({ 'optimize', 'plan', 'verify', 'profile', 'jobs', 'cancel', 'report', 'log', 'doctor' }) do
    t.check(vim.list_contains(names, name), name)
  end
  t.check(vim.deep_equal(vim.fn.getcompletion('StitchCuda pro', 'cmdline'), { 'profile' }), 'completion')
  local function completes(line)
    return vim.fn.getcompletion(line, 'cmdline')
  end
  t.check(
    vim.deep_equal(completes('StitchCuda profile --dev'), { '--device', '--device-command' }),
    'the flags of profile'
  )
  t.check(vim.deep_equal(completes('StitchCuda profile e'), {}), 'and no files')
  -- A file first, or a version, which takes no flags; then flags. What has a space is escaped.
  vim.fn.writefile(vim.fn.readfile('e.cu'), 'a b.cu')
  for line, expected in pairs({
    ['verify --call'] = {},
    ['verify e.cu --call'] = { '--calls' },
    ['verify e.cu e'] = { 'e.cu' },
    ['verify e.cu e.cu e'] = {},
    ['verify saved --call'] = {},
    ['verify a'] = { 'a\\ b.cu' },
    ['verify a\\ b'] = { 'a\\ b.cu' },
  }) do
    local completed = completes('StitchCuda ' .. line)
    t.check(vim.deep_equal(completed, expected), line .. ': ' .. vim.inspect(completed))
  end
  t.check(vim.deep_equal(completes('tab 1,$StitchC pro'), { 'profile' }), 'a shortened name')
  t.check(vim.deep_equal(completes('StitchC import trac'), { 'trace.json' }), 'its arguments')
  vim.cmd('StitchCuda nonsense')
  t.wait_for_message('`nonsense` is no subcommand')

  local bufnr = t.open('e.cu')
  t.diagnostic(bufnr, 'static/pow-small-exponent')
  vim.cmd('StitchCuda report')
  t.wait_for_message('there are no runs yet')

  -- Heat: it moves with its line, goes when its function changes, and is back when that is undone.
  local heat = require('stitchcuda.heat')
  local function hot()
    return heat.shown(bufnr)[t.line_of(bufnr, 'powf')]
  end
  vim.cmd('StitchCuda profile')
  local text = t.wait('heat', hot)
  t.check(text:find('^%d+%% of what the program moves .*sectors.*sim:h200'), text)
  vim.api.nvim_buf_set_lines(bufnr, 0, 0, false, { '// a line more' })
  t.check(next(heat.shown(bufnr)) == nil, 'no heat of a text that nobody looked at')
  t.wait('heat of the line that moved', hot)
  local place = t.line_of(bufnr, 'powf')
  vim.api.nvim_buf_set_lines(bufnr, place - 1, place - 1, false, { '  int j = 0;' })
  t.pause(1000)
  t.check(next(heat.shown(bufnr)) == nil, 'no heat of another kernel')
  vim.cmd.undo()
  t.wait('heat again', hot)
  vim.cmd('StitchCuda heat')
  t.check(next(heat.shown(bufnr)) == nil, 'hidden')
  vim.cmd('StitchCuda heat')
  t.wait('heat again', hot)
  -- What a profiler wrote elsewhere.
  vim.cmd('StitchCuda import')
  t.wait_for_message('say which file')
  t.check(vim.deep_equal(vim.fn.getcompletion('StitchCuda import trac', 'cmdline'), { 'trace.json' }), 'files')
  for _, file in ipairs({ 'models/net.py', 'train.py' }) do
    vim.fn.mkdir(vim.fs.dirname(file), 'p')
    vim.fn.writefile(vim.fn['repeat']({ 'step = 1' }, 40), file)
    t.open(file)
  end
  vim.cmd('StitchCuda import trace.json')
  local function has_time(file)
    t.wait('the time of a line of ' .. file, function()
      return vim.iter(vim.tbl_values(heat.shown(vim.fn.bufnr(file)))):any(function(shown)
        return shown:find('^time of the GPU [%d.]+ µs .*NVIDIA H200')
      end)
    end)
  end
  -- All that are open and that it speaks of have heat, and so has what is opened later.
  has_time('train.py')
  has_time('models/net.py')
  vim.cmd('bwipeout models/net.py')
  t.open('models/net.py')
  has_time('models/net.py')
  -- Hidden, it stays hidden, unless the file itself is profiled.
  vim.cmd.buffer('train.py')
  vim.cmd('StitchCuda heat')
  vim.cmd('StitchCuda import trace.json')
  t.pause(1000)
  t.check(next(heat.shown(0)) == nil, 'it is hidden')
  vim.cmd('bwipeout! train.py models/net.py')
  vim.cmd.buffer(bufnr)
  -- What is not saved is not profiled.
  vim.bo[bufnr].modified = true
  vim.cmd('StitchCuda profile e.cu')
  t.wait_for_message('takes flags only')
  vim.cmd('StitchCuda profile --device sim:h200')
  t.wait_for_message('write the file first')
  vim.cmd.write()
  vim.cmd('StitchCuda profile --device sim:h200')
  t.check(t.page('profile'):find('warps; 3'), t.page('profile'))
  vim.cmd.close()

  t.check(vim.deep_equal(vim.fn.getcompletion('StitchCuda verify e', 'cmdline'), { 'e.cu' }), 'files')
  t.check(
    vim.deep_equal(vim.fn.getcompletion('StitchCuda verify s', 'cmdline'), { 'saved', 'scale.py', 'stitchcuda.toml' }),
    'words'
  )
  -- Whatever flags there are, the file of the window is the reference, and flags are no files.
  vim.cmd('StitchCuda verify --tolerance 1e-3 e.cu')
  t.wait_for_message('say against what, before any flag')
  vim.cmd('StitchCuda verify saved --calls 1')
  t.wait_for_message('`saved` takes nothing more')
  vim.cmd('StitchCuda verify e.cu e.cu e.cu')
  t.wait_for_message('at most two files')
  vim.cmd('StitchCuda verify a\\ b.cu --calls 1')
  t.check(t.page('verify'):find('a b.cu', 1, true), t.page('verify'))
  vim.cmd.close()

  vim.cmd('StitchCuda pause')
  t.wait_for_message('nothing is compiled by itself')
  t.wait('the status', function()
    return require('stitchcuda').server_status().paused
  end)
  -- Each buffer has the status of its own server.
  vim.fn.mkdir('other')
  vim.fn.writefile({}, 'other/stitchcuda.toml')
  vim.fn.writefile(vim.fn.readfile('e.cu'), 'other/e.cu')
  t.open('other/e.cu')
  t.wait('the status of the other server', function()
    local status = require('stitchcuda').server_status()
    return status and not status.paused
  end)
  vim.cmd.buffer(bufnr)
  t.check(require('stitchcuda').server_status().paused, 'the first is paused still')
  vim.cmd('bwipeout other/e.cu')
  vim.cmd('checkhealth stitchcuda')
  local paused = t.text(0)
  for _, part in ipairs({ 'device: sim:h200', 'engine: builtin', 'toolkit: CUDA %d', 'Paused: nothing is compiled' }) do
    t.check(paused:find(part), paused)
  end
  vim.cmd.close()
  vim.cmd.write()
  vim.cmd('StitchCuda resume')
  t.wait_for_message('saved files are compiled')

  vim.cmd('StitchCuda log')
  t.check(t.page('log'):find('lsp.log'), t.page('log'))
  vim.cmd.close()
  vim.cmd('StitchCuda doctor')
  t.check(t.page('doctor'):find('nvcc'), t.page('doctor'))
  vim.cmd.close()

  vim.cmd('checkhealth stitchcuda')
  local health = t.text(0)
  for _, part in ipairs({ 'vim.g.stitchcuda` can be read', '✅ OK stitchcuda %d', 'nvcc', 'language server' }) do
    t.check(health:find(part), health)
  end
  vim.cmd.close()

  local doc = vim.fs.joinpath(vim.env.STITCHCUDA_TEST_PLUGIN, 'doc')
  vim.fn.mkdir('doc')
  for _, page in ipairs({ 'stitchcuda.txt', 'stitchcuda-settings.txt' }) do
    t.check(vim.uv.fs_copyfile(vim.fs.joinpath(doc, page), 'doc/' .. page), page)
  end
  -- Fails for a tag that is there twice.
  vim.cmd.helptags('doc')
  local tags = table.concat(vim.fn.readfile('doc/tags'), '\n')
  for _, name in ipairs(names) do
    t.check(tags:find(':StitchCuda-' .. name, 1, true), 'no help for ' .. name)
  end
  t.check(tags:find('stitchcuda-settings.nvcc.path', 1, true), tags)
  -- Every link leads somewhere.
  local known = {}
  for tag in vim.gsplit(tags, '\n') do
    known[tag:match('^[^\t]+') or ''] = true
  end
  for _, line in ipairs(vim.fn.readfile('doc/stitchcuda.txt')) do
    for link in line:gmatch('|(%S-)|') do
      t.check(known[link] or #vim.fn.getcompletion(link, 'help') > 0, 'no help for ' .. link)
    end
  end
  -- Numbers go with the server that knew of them.
  vim.cmd.buffer(bufnr)
  t.wait('heat', hot)
  t.attached(bufnr):stop()
  t.wait('no heat without a server', function()
    return next(heat.shown(bufnr)) == nil and next(require('stitchcuda.hints').shown(bufnr)) == nil
  end)
end)
