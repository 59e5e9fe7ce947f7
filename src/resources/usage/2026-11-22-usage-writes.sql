-- What was written into the cache of a provider, which costs more than the rest of a prompt: for some minutes, and for an hour.
alter table usage
  add column cache_write_tokens bigint not null default 0,
  add column cache_write_1h_tokens bigint not null default 0;
