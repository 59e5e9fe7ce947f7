-- Where a job can be done: in processes that have this folder of files. Empty: anywhere.
alter table job add column place text not null default '';
create index job_placed_waiting on job (kind, place) where state = 'waiting' and place <> '';

-- Folders of files whose processes work on jobs.
create table job_place (
  id text primary key,
  machine text not null,
  seen_at timestamptz not null default now()
);
