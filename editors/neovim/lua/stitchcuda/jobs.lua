-- The server's jobs: what runs, how far it is, how it ended.

local M = {}

--- Finished jobs that are kept.
local MOST_FINISHED = 50

---@class stitchcuda.Job
---@field client_id integer
---@field id integer The server's number
---@field title string
---@field state 'running'|'done'|'cancelled'|'failed'
---@field message? string The stage
---@field started integer Milliseconds
---@field ended? integer

---@type stitchcuda.Job[]
local jobs = {}

local function changed()
  vim.api.nvim_exec_autocmds('User', { pattern = 'StitchCudaJobs', modeline = false })
end

---@param client_id integer
---@param id integer
---@return stitchcuda.Job?
local function find(client_id, id)
  return vim.iter(jobs):find(function(job)
    return job.client_id == client_id and job.id == id
  end)
end

local function forget_the_oldest()
  local finished = 0
  for index = #jobs, 1, -1 do
    if jobs[index].state ~= 'running' then
      finished = finished + 1
      if finished > MOST_FINISHED then
        table.remove(jobs, index)
      end
    end
  end
end

--- Progress of a server of ours.
---@param client vim.lsp.Client
---@param params lsp.ProgressParams
function M.on_progress(client, params)
  local id = tonumber(tostring(params.token):match('^stitchcuda/(%d+)$'))
  local value = params.value
  if not id or type(value) ~= 'table' then
    return
  end
  local job = find(client.id, id)
  if not job then
    job = { client_id = client.id, id = id, title = value.title or '', state = 'running', started = vim.uv.now() }
    jobs[#jobs + 1] = job
    forget_the_oldest()
  end
  if value.kind == 'end' then
    local how = value.message
    job.state = (how == 'cancelled' or how == 'failed') and how or 'done'
    job.ended = vim.uv.now()
  elseif value.message then
    job.message = value.message
  end
  changed()
end

--- A server has ended, and its jobs with it.
---@param client_id integer
function M.gone(client_id)
  for _, job in ipairs(jobs) do
    if job.client_id == client_id and job.state == 'running' then
      job.state, job.message, job.ended = 'failed', 'the server ended', vim.uv.now()
    end
  end
  changed()
end

--- All of them, the newest first.
---@return stitchcuda.Job[]
function M.list()
  return vim.iter(jobs):rev():totable()
end

---@return stitchcuda.Job[]
function M.running()
  return vim.tbl_filter(function(job)
    return job.state == 'running'
  end, M.list())
end

---@param job stitchcuda.Job
function M.cancel(job)
  local client = vim.lsp.get_client_by_id(job.client_id)
  if client then
    client:request(
      'workspace/executeCommand',
      { command = 'stitchcuda.cancel', arguments = { job.id } },
      function() end
    )
  end
end

---@param job stitchcuda.Job
---@return string
function M.line(job)
  local seconds = ((job.ended or vim.uv.now()) - job.started) / 1000
  local stage = job.message and (': ' .. job.message) or ''
  return ('%-9s %6.1f s  %d  %s%s'):format(job.state, seconds, job.id, job.title, stage)
end

--- What runs, for a status line.
---@return string
function M.status()
  local running = M.running()
  if #running == 0 then
    return ''
  end
  local more = #running > 1 and (' (and %d more)'):format(#running - 1) or ''
  local stage = running[1].message and (': ' .. running[1].message) or ''
  return running[1].title .. stage .. more
end

return M
