-- Functions, because each of these is one round trip and one transaction, and its statements see what was committed while it waited for a lock.
-- Locks are taken in one order everywhere: the holder, the journal's position, the rows of spent by owner and month, the leases.
-- Their plans are kept as long as a session: one made while a table was empty must not scan it when it has grown, hence enable_seqscan.

-- Books rows: an array of usage rows as JSON. Only rows that were not there yet count into the sums and into what the holder has settled.
create function usage_book(the_holder text, rows json) returns void language plpgsql as $$
begin
  with added as (
    insert into usage
    select "requestId", step, to_char(to_timestamp(at / 1000) at time zone 'UTC', 'YYYY-MM'), to_timestamp(at / 1000), "userId", coalesce("teamIds", '{}'),
      "keyId", left(app, 200), face, tags, left(model, 200), left("servedModel", 200), provider, region, attempts, status, "end", "inputTokens", "outputTokens",
      "cachedTokens", "thoughtTokens", provenance, "planTokens", coalesce(balance, 'inference'), "costUsd", "queueMs", "firstTokenMs", "totalMs"
    from json_to_recordset(rows) as row(
      "requestId" text, step bigint, at double precision, "userId" bigint, "teamIds" bigint[], "keyId" bigint, app text, face text, tags jsonb, model text,
      "servedModel" text, provider text, region text, attempts json, status integer, "end" text, "inputTokens" bigint, "outputTokens" bigint,
      "cachedTokens" bigint, "thoughtTokens" bigint, provenance text, "planTokens" bigint, balance text, "costUsd" numeric, "queueMs" double precision,
      "firstTokenMs" double precision, "totalMs" double precision)
    on conflict do nothing
    returning month, at, user_id, team_ids, key_id, app, face, tags, model, provider, region, status, input_tokens, output_tokens, plan_tokens, balance, cost_usd
  ), shares as (
    select 'user:' || user_id as owner, month, plan_tokens, balance, cost_usd, input_tokens, output_tokens from added
    union all
    select 'team:' || team, month, plan_tokens, balance, cost_usd, input_tokens, output_tokens from added, unnest(team_ids) as team
  ), sums as materialized (
    select owner, month, coalesce(sum(plan_tokens) filter (where balance = 'inference'), 0) as inference,
      coalesce(sum(plan_tokens) filter (where balance = 'train'), 0) as train, coalesce(sum(cost_usd), 0) as usd,
      count(*) as requests, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens
    from shares group by owner, month
  ), booked as (
    insert into spent as old
    select * from sums order by owner collate "C", month
    on conflict (owner, month) do update set
      inference = old.inference + excluded.inference, train = old.train + excluded.train, usd = old.usd + excluded.usd,
      requests = old.requests + excluded.requests, input_tokens = old.input_tokens + excluded.input_tokens,
      output_tokens = old.output_tokens + excluded.output_tokens
    returning owner, month
  ), settled as (
    update leases set settled = settled + case kind when 'inference' then sums.inference when 'train' then sums.train else sums.usd end
    from booked join sums using (owner, month)
    where leases.owner = booked.owner and leases.month = booked.month and kind in ('inference', 'train', 'usd') and holder = the_holder
  )
  insert into usage_fresh
  select month, date_trunc('hour', at, 'UTC'), user_id, key_id, app, face, model, provider, region, coalesce(tags::text, ''), count(*), sum(input_tokens), sum(output_tokens),
    sum(plan_tokens), coalesce(sum(cost_usd), 0), count(*) filter (where status >= 400)
  from added group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10;
end $$;

-- Books the rows of a journal from one byte to another, once. The answer is null when that was done now, else where the journal's position stands.
create function usage_ship(the_holder text, the_journal text, from_byte bigint, to_byte bigint, rows json) returns bigint language plpgsql as $$
declare
  stands bigint;
begin
  perform from holders where id = the_holder for share;
  insert into journal_position (journal, byte) values (the_journal, 0) on conflict do nothing;
  select byte into stands from journal_position where journal = the_journal for update;
  if stands >= to_byte or stands <> from_byte then
    return stands;
  end if;
  perform usage_book(the_holder, rows);
  update journal_position set byte = to_byte, moved_at = now() where journal = the_journal;
  return null;
end $$;

-- Moves so many of what was booked last to the sums of their hours; the answer is how many. One at a time does.
create function usage_fold(most integer) returns bigint language plpgsql as $$
declare
  moved bigint;
begin
  if not pg_try_advisory_xact_lock(7239014553) then
    return 0;
  end if;
  with gone as (
    delete from usage_fresh where ctid = any (array(select ctid from usage_fresh limit most)) returning *
  ), sums as (
    insert into usage_hour as old
    select month, hour, user_id, key_id, app, face, model, provider, region, tags, sum(requests), sum(input_tokens), sum(output_tokens), sum(plan_tokens),
      sum(cost_usd), sum(errors)
    from gone group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
    on conflict (hour, user_id, key_id, model, app, face, provider, region, tags, month) do update set
      requests = old.requests + excluded.requests, input_tokens = old.input_tokens + excluded.input_tokens,
      output_tokens = old.output_tokens + excluded.output_tokens, plan_tokens = old.plan_tokens + excluded.plan_tokens,
      cost_usd = old.cost_usd + excluded.cost_usd, errors = old.errors + excluded.errors
  )
  select count(*) into moved from gone;
  return moved;
end $$;

-- Locks the accounts that an array of JSON names, and makes their rows where they are missing. An upsert whose update never comes true locks and writes nothing.
create function account_lock(accounts jsonb) returns void language sql as $$
  insert into spent (owner, month)
  select distinct owner, month from jsonb_to_recordset(accounts) as account(owner text collate "C", month text collate "C") order by owner, month
  on conflict (owner, month) do update set requests = 0 where false
$$;

-- Writes down permits that a holder has used, with their ages in seconds, but for the first `known` of them; the answer is how many there were beyond those.
create function request_used(the_owner text, used jsonb, known double precision, now_at double precision) returns double precision language plpgsql as $$
declare
  many double precision;
begin
  if used is null then
    return 0;
  end if;
  insert into request_second as old
  select the_owner, floor(now_at - "ageSeconds"), sum(fresh)
  from (
    select "ageSeconds", least(count, sum(count) over (order by place) - known) as fresh
    from rows from (jsonb_to_recordset(used) as (count bigint, "ageSeconds" double precision)) with ordinality as use(count, "ageSeconds", place)
  ) as use
  where fresh > 0 and "ageSeconds" < 61 group by 2 order by 2
  on conflict (owner, second) do update set requests = old.requests + excluded.requests;
  delete from request_second where owner = the_owner and second < floor(now_at) - 60;
  select greatest(coalesce(sum(count), 0) - known, 0) into many from jsonb_to_recordset(used) as use(count bigint);
  return many;
end $$;

-- Takes what a holder says with each message: see Return in src/model/lease.ts. False when a later message has overtaken this one.
create function lease_told(
  the_holder text, the_owner text, the_month text, the_kind text, the_turn bigint, heard bigint, amount double precision, used jsonb, now_at double precision)
returns boolean language plpgsql set enable_seqscan = off as $$
declare
  lease leases;
  unheard boolean;
  fresh double precision;
begin
  select * into lease from leases where owner = the_owner and month = the_month and kind = the_kind and holder = the_holder;
  if lease.turn >= the_turn then
    return false;
  end if;
  unheard := coalesce(lease.turn > heard, false);
  fresh := request_used(the_owner, used, case when unheard then lease.reported else 0 end, now_at);
  if unheard or amount > 0 or fresh > 0 then
    lease.granted := case when unheard then lease.granted - lease.moved else lease.granted end;
    lease.moved := -least(greatest(amount, 0), lease.granted); -- not up to what is settled: a call may have cost more since the amount was first given back
    update leases set granted = lease.granted + lease.moved, settled = settled + fresh, turn = the_turn, moved = lease.moved,
      reported = case when unheard then reported else 0 end + fresh
    where owner = the_owner and month = the_month and kind = the_kind and holder = the_holder;
  end if;
  return true;
end $$;

-- Grants what an array of asks wishes, by the rule of src/model/lease.ts, in order; nothing at all to a holder that is closed.
-- now_at: seconds since 1970, for those who make time; the database's own where it is null.
create function account_lease(the_holder text, asks jsonb, now_at double precision)
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
      insert into leases as old (owner, month, kind, holder, granted, turn, moved)
      values (ask.owner, ask.month, ask.kind, the_holder, granted, ask.turn, granted)
      on conflict (owner, month, kind, holder) do update set granted = old.granted + excluded.granted, turn = excluded.turn,
        moved = case when old.turn = excluded.turn then old.moved else 0 end + excluded.moved,
        reported = case when old.turn = excluded.turn then old.reported else 0 end;
    end if;
    "left" := ask."limit" - spent - others - greatest(own.held + granted, 0);
    contested := others > 0 and granted < greatest(ask.least, ask.waiting);
    return next;
  end loop;
end $$;

-- Takes back what a holder does not need. False when it is closed.
create function account_give_back(the_holder text, returns jsonb, now_at double precision) returns boolean language plpgsql set enable_seqscan = off as $$
declare
  one record;
begin
  perform from holders where id = the_holder and closed_at is null for share;
  if not found then
    return false;
  end if;
  now_at := coalesce(now_at, extract(epoch from clock_timestamp()));
  perform account_lock(returns);
  for one in
    select * from jsonb_to_recordset(returns) as one(
      owner text, kind text, month text, turn bigint, heard bigint, amount double precision, used jsonb)
  loop
    -- What comes back whole is forgotten. Not where it is said again, or permits are reported that may be reported again: there may be more to come.
    delete from leases
    where owner = one.owner and month = one.month and kind = one.kind and holder = the_holder
      and granted - one.amount = settled and turn <= one.heard and one.amount > 0 and coalesce(jsonb_array_length(one.used), 0) = 0;
    if not found then
      perform lease_told(the_holder, one.owner, one.month, one.kind, one.turn, one.heard, one.amount, one.used, now_at);
    end if;
  end loop;
  return true;
end $$;
