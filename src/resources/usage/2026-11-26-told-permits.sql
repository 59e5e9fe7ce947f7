-- Grants what an array of asks wishes, by the rule of src/model/lease.ts, in order; nothing at all to a holder that is closed.
-- now_at: seconds since 1970, for those who make time; the database's own where it is null.
create or replace function account_lease(the_holder text, asks jsonb, now_at double precision)
returns table (granted double precision, spent double precision, "left" double precision, contested boolean) language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
declare
  ask record;
  own record;
  many integer;
  is_late boolean;
  others double precision;
  free double precision;
begin
  perform from holders where id = the_holder and closed_at is null for share;
  if not found then
    return;
  end if;
  select count(*) into many from holders where closed_at is null;
  now_at := coalesce(now_at, extract(epoch from clock_timestamp()));
  perform account_lock(asks);
  for ask in
    select * from jsonb_to_recordset(asks) as ask(
      owner text, kind text, month text, turn bigint, heard bigint, amount double precision, used jsonb,
      "limit" double precision, least double precision, waiting double precision, wish double precision)
  loop
    is_late := not lease_told(the_holder, ask.owner, ask.month, ask.kind, ask.turn, ask.heard, ask.amount, ask.used, now_at);
    select
      coalesce(sum(leases.granted - leases.settled) filter (where holder = the_holder), 0) as held,
      coalesce(sum(greatest(leases.granted - leases.settled, 0)) filter (where holder <> the_holder), 0) as others
    into own from leases where owner = ask.owner and month = ask.month and kind = ask.kind;
    others := own.others;
    spent := case ask.kind
      when 'streams' then 0
      when 'requests' then (select coalesce(sum(requests), 0) from request_second where owner = ask.owner and second >= floor(now_at) - 60)
      else (
        select case ask.kind when 'inference' then sum.inference when 'train' then sum.train else sum.usd end
        from spent as sum where owner = ask.owner and month = ask.month)
    end;
    -- A holder that has settled more than it was granted is in debt: the debt is in spent already, so what pays for it costs nothing.
    free := ask."limit" - spent - others - own.held;
    granted := case
      when is_late or free < ask.least then 0
      when free < 8 * many * ask.least then least(free, greatest(ask.least, ask.waiting))
      else least(free, greatest(ask.least, ask.waiting, least(ask.wish, free / 8)))
    end;
    if granted > 0 then
      -- Permits that were used before there was this lease are no part of it: said again they would be settled.
      insert into leases as old (owner, month, kind, holder, granted, turn, moved, reported)
      values (ask.owner, ask.month, ask.kind, the_holder, granted, ask.turn, granted,
        (select coalesce(sum(count), 0) from jsonb_to_recordset(ask.used) as use(count bigint)))
      on conflict (owner, month, kind, holder) do update set granted = old.granted + excluded.granted, turn = excluded.turn,
        moved = case when old.turn = excluded.turn then old.moved else 0 end + excluded.moved,
        reported = case when old.turn = excluded.turn then old.reported else 0 end;
    end if;
    "left" := ask."limit" - spent - others - greatest(own.held + granted, 0);
    contested := others > 0 and granted < greatest(ask.least, ask.waiting);
    return next;
  end loop;
end $$;
