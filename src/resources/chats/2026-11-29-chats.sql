-- chats of users, and a row for each of their messages: a message that names another as its parent goes on from it, and two with one parent are branches
create table chat (
  id uuid primary key,
  user_id bigint not null references users (id) on delete cascade,
  title text not null,
  folder text,
  mode text not null check (mode in ('chat', 'code', 'prose')),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index chat_user on chat (user_id, updated_at, id);

create table chat_message (
  id bigint generated always as identity primary key,
  chat_id uuid not null references chat (id) on delete cascade,
  user_id bigint not null references users (id) on delete cascade,
  parent bigint references chat_message (id) on delete cascade,
  is_user boolean not null,
  message text not null,
  model text,
  request_id text,
  -- the further members that a client of the native interface keeps with it, as JSON text
  more text,
  bytes int not null,
  at timestamptz not null default now()
);
create index chat_message_chat on chat_message (chat_id, id);
create index chat_message_user on chat_message (user_id, id);
create index chat_message_parent on chat_message (parent) where parent is not null;
