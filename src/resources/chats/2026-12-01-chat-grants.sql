-- the number by which grants know a chat, and who gave it to its owner, where somebody else did
alter table chat add column number bigint generated always as identity;
alter table chat add column given_by bigint;
create unique index chat_number on chat (number);
create index chat_given on chat (user_id) where given_by is not null;
