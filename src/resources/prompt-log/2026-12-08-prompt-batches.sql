-- What is written at once of one user is one row: a few large ones cost a fraction of many small ones. `sealed` holds the texts of all `requests`, with what stood
-- in columns of its own. Rows of before are of one request, `last_request`; they have an `address`, and neither `requests` nor `first_request`.
alter table prompt_log rename column request_id to last_request;
alter table prompt_log add column first_request text collate "C";
alter table prompt_log add column requests text[];
alter table prompt_log alter column address drop not null;
alter table prompt_log alter column prompt_length drop not null;
alter table prompt_log alter column answer_length drop not null;
-- What is sealed cannot be compressed.
alter table prompt_log alter column sealed set storage external;
alter table prompt_log drop constraint prompt_log_pkey;
create index prompt_log_user on prompt_log (user_id, at);
