-- A row is looked for by its user too, so that one index does for both. Request ids grow with time: rows are added at the end of a user's part of it.
alter table prompt_log drop constraint prompt_log_pkey;
alter table prompt_log add primary key (user_id, request_id);
drop index prompt_log_user;
