-- Calls of tools that their user approved, each of which is made once: the row is there before the call is made, with its result afterwards.
create table mcp_approved_call (
  user_id bigint not null references users (id) on delete cascade,
  id text not null,
  sealed bytea,
  created_at timestamptz not null default now(),
  primary key (user_id, id)
);
create index mcp_approved_call_created on mcp_approved_call (created_at);
create index mcp_approved_call_result on mcp_approved_call (created_at) where sealed is not null;

-- The calls of what waits that were approved: what waits may be gone on with again where no answer came of it, and with these alone.
alter table mcp_waiting add column approved text[];
