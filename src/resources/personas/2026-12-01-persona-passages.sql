-- the passages that a persona's prompt cites; who may use the persona may read them, as far as whoever wrote it may
create table persona_passage (
  persona_id bigint not null references persona (id) on delete cascade,
  passage_id bigint not null,
  user_id bigint not null,
  primary key (persona_id, passage_id)
);
create index persona_passage_of on persona_passage (passage_id);
