-- The jobs of an owner, newest first.
create index job_of_owner on job (owner, added_at desc, id desc) where owner <> '';
