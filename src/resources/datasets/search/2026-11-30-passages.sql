-- The passages of one file in one generation, which come and go together. No foreign keys lead to files: what was removed with them goes in pieces (`reconcile`),
-- and nothing is found whose file is not there.
create table editions (
  id bigint generated always as identity primary key,
  dataset_id bigint not null,
  file_id bigint not null,
  generation integer not null,
  -- ISO 639-1, or `und`: how its words are made into terms
  language text not null,
  passages integer not null default 0,
  tokens bigint not null default 0,
  -- the length of all its passages, in terms
  terms bigint not null default 0,
  unique (file_id, generation)
);
create index editions_dataset on editions (dataset_id);

create table passages (
  id bigint generated always as identity primary key,
  edition_id bigint not null references editions (id),
  ordinal integer not null,
  page integer,
  -- in the text of the file, in code points
  start integer not null,
  "end" integer not null,
  context text not null,
  quote text not null,
  tokens integer not null,
  unique (edition_id, ordinal)
);

create table posting (
  dataset_id bigint not null,
  edition_id bigint not null,
  passage_id bigint not null,
  term text not null,
  -- how often the passage has the term
  tf smallint not null,
  -- how many terms the passage has, in all
  len smallint not null
);
create index posting_term on posting (term, dataset_id) include (passage_id, edition_id, tf, len);
create index posting_edition on posting (edition_id);

-- The tables of vectors, `vectors_<id>`: one for each model and number of dimensions, made when it is first needed.
create table vector_tables (
  id integer generated always as identity primary key,
  model text not null,
  dimensions integer not null check (dimensions between 1 and 16000),
  -- `vector`: of pgvector; `bytes`: 32-bit floats, little-endian
  kind text not null check (kind in ('vector', 'bytes')),
  unique (model, dimensions)
);

-- What texts have been embedded to, so that the same text is not embedded again.
create table embedding_cache (
  model text not null,
  dimensions integer not null,
  -- SHA-256
  hash bytea not null,
  -- 32-bit floats, little-endian
  vector bytea not null,
  used_on date not null default current_date,
  primary key (hash, model, dimensions)
);
create index embedding_cache_used on embedding_cache (used_on);
