create table stored_response (
  user_id bigint not null references users (id) on delete cascade,
  id text not null,
  -- what it goes on from
  previous_id text,
  status text not null,
  -- items of its input and output
  items integer not null,
  -- sealed: what was asked and answered
  body bytea not null,
  bytes bigint not null,
  expires_at timestamptz not null,
  primary key (user_id, id)
);
-- what is sealed cannot be made smaller
alter table stored_response alter column body set storage external;
create index stored_response_previous on stored_response (user_id, previous_id) where previous_id is not null;
create index stored_response_status on stored_response (user_id, status) include (bytes);
create index stored_response_expires on stored_response (expires_at);

create table conversation (
  user_id bigint not null references users (id) on delete cascade,
  id text not null,
  -- its newest entry, a stored response
  head text,
  -- sealed
  metadata bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (user_id, id)
);
create index conversation_head on conversation (user_id, head) where head is not null;
create index conversation_expires on conversation (expires_at);
