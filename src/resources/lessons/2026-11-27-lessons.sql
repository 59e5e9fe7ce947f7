create table lesson (
  id bigint generated always as identity primary key,
  -- digest of provider, wire, address and version: what another version has learned is not understood
  place text not null,
  provider text not null,
  wire text not null,
  model text not null,
  fields jsonb not null,
  learned jsonb not null,
  quirks jsonb not null,
  until timestamptz not null,
  unique (place, model)
);
