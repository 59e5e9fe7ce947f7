-- The rows of a shipment. Empty members are omitted in it; they are filled in here.
create or replace function usage_rows(rows json) returns setof usage language sql stable as $$
  select "requestId", step, to_char(to_timestamp(at / 1000) at time zone 'UTC', 'YYYY-MM'), to_timestamp(at / 1000), "userId", coalesce("teamIds", '{}'),
    "keyId", left(app, 200), face, tags, left(model, 200), left("servedModel", 200), provider, coalesce(region, ''), attempts, status, "end", "inputTokens",
    "outputTokens", coalesce("cachedTokens", 0), coalesce("thoughtTokens", 0), provenance, "planTokens", coalesce(balance, 'inference'),
    "costUsd"::numeric(20, 12), coalesce("queueMs", 0), "firstTokenMs", "totalMs", coalesce("cacheWriteTokens", 0), coalesce("cacheWrite1hTokens", 0),
    left(route, 200)
  from json_to_recordset(rows) as row(
    "requestId" text, step bigint, at double precision, "userId" bigint, "teamIds" bigint[], "keyId" bigint, app text, face text, tags jsonb, model text,
    "servedModel" text, provider text, region text, attempts json, status integer, "end" text, "inputTokens" bigint, "outputTokens" bigint,
    "cachedTokens" bigint, "thoughtTokens" bigint, provenance text, "planTokens" bigint, balance text, "costUsd" numeric, "queueMs" double precision,
    "firstTokenMs" double precision, "totalMs" double precision, "cacheWriteTokens" bigint, "cacheWrite1hTokens" bigint, route text)
$$;

-- Inserts rows and returns those that are new. Checking each for one that exists takes a fifth of the whole time, so that is done only if they may exist.
-- @raises unique_violation for an existing row otherwise
create function usage_added(rows json, may_exist boolean) returns setof usage language plpgsql as $$
begin
  if may_exist then
    return query insert into usage select * from usage_rows(rows) on conflict do nothing returning *;
  else
    return query insert into usage select * from usage_rows(rows) returning *;
  end if;
end $$;

-- Books rows: inserts them, and adds them to what accounts have spent, to what is settled of the holder's leases, and to the sums of hours, which are few and from
-- which the other sums are made. @returns how many of the rows are new
create function usage_book(the_holder text, rows json, may_exist boolean) returns bigint language plpgsql as $$
declare
  many bigint;
begin
  perform pg_advisory_xact_lock_shared(7239014555); -- no book is opened meanwhile
  with hours as materialized (
    select month, date_trunc('hour', at, 'UTC') as hour, user_id, key_id, app, face, model, provider, region, coalesce(tags::text, '') as tags, balance,
      team_ids, coalesce(route, model) as route, count(*) as requests, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,
      sum(plan_tokens) as plan_tokens, coalesce(sum(cost_usd), 0) as cost_usd, count(*) filter (where status >= 400 and status <> 499) as errors,
      sum(cached_tokens) as cached_tokens, array_agg(first_token_ms) as first_times, array_agg(total_ms) as total_times,
      count(*) filter (where is_unpriced(cost_usd, status, input_tokens, output_tokens)) as unpriced
    from usage_added(rows, may_exist) group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
  ), parts as (
    select month, (hour at time zone 'UTC')::date as day, user_id, team_ids, key_id, route,
      coalesce(sum(plan_tokens) filter (where balance = 'inference'), 0) as inference,
      coalesce(sum(plan_tokens) filter (where balance = 'train'), 0) as train, sum(cost_usd) as usd,
      sum(requests) as requests, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens
    from hours group by 1, 2, 3, 4, 5, 6
  ), shares as (
    select owner, month, is_always, sum(inference) as inference, sum(train) as train, sum(usd) as usd, sum(requests) as requests,
      sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens
    from parts, usage_books(user_id, team_ids, key_id, route, day) group by 1, 2, 3
  ), sums as materialized (
    select owner, month, inference, train, usd, requests, input_tokens, output_tokens from shares
    where is_always or exists (select from spent where spent.owner = shares.owner and spent.month = shares.month)
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
  ), fresh as (
    insert into usage_fresh
    select month, hour, user_id, key_id, app, face, model, provider, region, tags, requests, input_tokens, output_tokens, plan_tokens, cost_usd, errors,
      balance, team_ids, route, cached_tokens, times_of(first_times), times_of(total_times),
      usage_series(app, face, model, route, provider, region, tags, balance, team_ids), unpriced
    from hours
    returning requests
  )
  select coalesce(sum(requests), 0) into many from fresh;
  return many;
end $$;

-- Nothing calls these any more.
drop function usage_ship;
drop function usage_book(text, json);

-- Books the part of a journal from one byte to another, once. Existing rows are rare (a dead process had booked them, or two machines adopt one journal), so they
-- are checked for only after a collision. @returns `collisions`: the places, from 0, of rows that another row of the same key kept out; `stands`: the stored
-- position where nothing was done
create or replace function usage_shipped(the_holder text, the_journal text, from_byte bigint, to_byte bigint, rows json, out stands bigint, out collisions json)
language plpgsql as $$
begin
  perform from holders where id = the_holder for share;
  insert into journal_position (journal, byte) values (the_journal, 0) on conflict do nothing;
  select byte into stands from journal_position where journal = the_journal for update;
  if stands >= to_byte or stands <> from_byte then
    return;
  end if;
  begin
    perform usage_book(the_holder, rows, false);
  exception when unique_violation then
    if usage_book(the_holder, rows, true) < json_array_length(rows) then
      collisions := usage_collisions(rows);
    end if;
  end;
  update journal_position set byte = to_byte, moved_at = now() where journal = the_journal;
  stands := null;
end $$;
