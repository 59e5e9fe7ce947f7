create table datasets (
  id bigint generated always as identity primary key,
  owner_id bigint not null references users (id) on delete cascade,
  -- as its owner calls it
  name text not null,
  -- as everybody calls it
  full_name text not null,
  classification text not null default 'Unclassified' check (classification in ('Unclassified', 'CUI')),
  is_tabular boolean not null default false,
  -- whose vectors the passages have
  embedding_model text not null,
  -- null: not known before the first vector
  embedding_dimensions integer,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- nobody sees it any more; it goes when all that belonged to it is gone
  deleted_at timestamptz
);
create unique index datasets_full_name on datasets (full_name) where deleted_at is null;
create index datasets_owner on datasets (owner_id, id);
create index datasets_deleted on datasets (id) where deleted_at is not null;

create table dataset_files (
  id bigint generated always as identity primary key,
  dataset_id bigint not null references datasets (id) on delete cascade,
  filename text not null,
  -- the original: SHA-256 of the bytes, by which `blobs` keeps them; null where a text was given in place of a file
  blob text,
  type text,
  bytes bigint not null default 0,
  pages integer,
  passages integer not null default 0,
  tokens bigint not null default 0,
  -- which of its passages count; 0: none do yet
  generation integer not null default 0,
  -- the newest that was begun
  last_generation integer not null default 1,
  -- of the last job, which says how far the file is
  job_id text,
  -- the bytes that the job reads, until they take the place of `blob`
  next_blob text,
  next_bytes bigint,
  -- it has grants of its own, which narrow those of the dataset, though all of these may be gone
  narrowed boolean not null default false,
  -- who put it in
  user_id bigint,
  source_id bigint,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
create unique index dataset_files_name on dataset_files (dataset_id, filename) where deleted_at is null;
create index dataset_files_dataset on dataset_files (dataset_id, id);
create index dataset_files_blob on dataset_files (blob) where blob is not null;
create index dataset_files_next_blob on dataset_files (next_blob) where next_blob is not null;
create index dataset_files_deleted on dataset_files (id) where deleted_at is not null;
