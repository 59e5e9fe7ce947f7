-- What a dataset follows: a page, a sitemap, a site, a bucket or a folder.
create table dataset_source (
  id bigint generated always as identity primary key,
  dataset_id bigint not null references datasets (id) on delete cascade,
  -- for whom it works: who added it, or changed it last
  user_id bigint references users (id) on delete set null,
  key_id bigint not null,
  type text not null check (type in ('page', 'sitemap', 'site', 'bucket', 'folder')),
  -- url, bucket (without keys) or folder
  place jsonb not null,
  -- the keys of a bucket, and whose secrets fill them
  credentials bytea,
  credentials_by bigint references users (id) on delete set null,
  every_hours integer,
  -- how often it was changed
  version integer not null default 0,
  -- the last synchronisation: its job, and what came of it
  job_id text,
  run text,
  state text not null default 'waiting',
  changed integer not null default 0,
  deleted integer not null default 0,
  failures jsonb not null default '[]',
  -- by which a folder is known to be the one that it was
  mark text,
  last_sync_at timestamptz,
  next_sync_at timestamptz,
  created_at timestamptz not null default now()
);
create index dataset_source_dataset on dataset_source (dataset_id, id);

-- What of a source is in the dataset.
create table dataset_source_item (
  source_id bigint not null references dataset_source (id) on delete cascade,
  -- the address of a page, the key of an object, the path below the folder
  address text not null,
  filename text not null,
  file_id bigint not null,
  -- SHA-256 of its content
  hash text not null,
  -- what the source said of it, by which it is known to be unchanged
  stamp text not null,
  -- the addresses that a page of a site leads to; null: unknown
  links jsonb,
  -- when its content was read
  read_at timestamptz not null default now(),
  -- the synchronisation that saw it last
  seen_in text not null,
  primary key (source_id, address)
);
create index dataset_source_item_seen on dataset_source_item (source_id, seen_in);
create index dataset_files_source on dataset_files (source_id) where source_id is not null;
