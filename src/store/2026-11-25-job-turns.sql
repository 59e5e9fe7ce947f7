-- Whose job it is: owners take turns. Empty: nobody's in particular.
alter table job add column owner text not null default '';
-- How often it was taken, the times counted that `tries` leaves out.
alter table job add column taken integer not null default 0;
update job set taken = tries;
create index job_owner_waiting on job (kind, owner, run_at, id) where state = 'waiting';
create index job_owner_running on job (kind, owner) where state = 'running';
