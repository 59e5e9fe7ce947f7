-- The rows of an array of JSON as they are booked.
create function usage_rows(rows json) returns setof usage language sql stable as $$
  select "requestId", step, to_char(to_timestamp(at / 1000) at time zone 'UTC', 'YYYY-MM'), to_timestamp(at / 1000), "userId", coalesce("teamIds", '{}'),
    "keyId", left(app, 200), face, tags, left(model, 200), left("servedModel", 200), provider, region, attempts, status, "end", "inputTokens", "outputTokens",
    "cachedTokens", "thoughtTokens", provenance, "planTokens", coalesce(balance, 'inference'), "costUsd"::numeric(20, 12), "queueMs", "firstTokenMs", "totalMs",
    coalesce("cacheWriteTokens", 0), coalesce("cacheWrite1hTokens", 0)
  from json_to_recordset(rows) as row(
    "requestId" text, step bigint, at double precision, "userId" bigint, "teamIds" bigint[], "keyId" bigint, app text, face text, tags jsonb, model text,
    "servedModel" text, provider text, region text, attempts json, status integer, "end" text, "inputTokens" bigint, "outputTokens" bigint,
    "cachedTokens" bigint, "thoughtTokens" bigint, provenance text, "planTokens" bigint, balance text, "costUsd" numeric, "queueMs" double precision,
    "firstTokenMs" double precision, "totalMs" double precision, "cacheWriteTokens" bigint, "cacheWrite1hTokens" bigint)
$$;

-- Which of these rows, by their places from 0, are not what is booked under their keys. That a call died is a guess, which one makes who has lost the end of the
-- journal: it says nothing against the row of the same call. A row is asked for by itself, for most shipments have none.
create function usage_collisions(rows json) returns json language sql stable as $$
  select coalesce(json_agg(place - 1 order by place), '[]')
  from json_array_elements(rows) with ordinality as one(row, place)
    cross join lateral usage_rows(json_build_array(row)) as given
    join usage as booked on booked.request_id = given.request_id and booked.step = given.step and booked.month = given.month
  where to_jsonb(booked) <> to_jsonb(given) and not (given."end" = 'gateway-died' and given.at = booked.at)
$$;

-- As before, and says how many of the rows were not there yet.
drop function usage_book;
create function usage_book(the_holder text, rows json) returns bigint language plpgsql as $$
declare
  many bigint;
begin
  with added as (
    insert into usage
    select * from usage_rows(rows)
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
  ), fresh as (
    insert into usage_fresh
    select month, date_trunc('hour', at, 'UTC'), user_id, key_id, app, face, model, provider, region, coalesce(tags::text, ''), count(*), sum(input_tokens), sum(output_tokens),
      sum(plan_tokens), coalesce(sum(cost_usd), 0), count(*) filter (where status >= 400)
    from added group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
    returning requests
  )
  select coalesce(sum(requests), 0) into many from fresh;
  return many;
end $$;

-- Books the rows of a journal as usage_ship does, which machines of an earlier release still call, and says which were left out because another row has their key.
create function usage_shipped(the_holder text, the_journal text, from_byte bigint, to_byte bigint, rows json, out stands bigint, out collisions json)
language plpgsql as $$
begin
  perform from holders where id = the_holder for share;
  insert into journal_position (journal, byte) values (the_journal, 0) on conflict do nothing;
  select byte into stands from journal_position where journal = the_journal for update;
  if stands >= to_byte or stands <> from_byte then
    return;
  end if;
  if usage_book(the_holder, rows) < json_array_length(rows) then
    collisions := usage_collisions(rows);
  end if;
  update journal_position set byte = to_byte, moved_at = now() where journal = the_journal;
  stands := null;
end $$;
