const form = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/;

const [first, end] = [Date.parse('0001-01-01'), Date.UTC(10_000, 0)];

/** An instant in ISO 8601 (`2026-11-01`, which is its midnight in UTC, or `2026-11-01T12:00:00Z`) → milliseconds since 1970; `undefined` for any other text, and for years outside 1 to 9999, which PostgreSQL and four digits cannot express. */
export function instantOf(text: string): number | undefined {
  const [, day] = form.exec(text) ?? [];
  if (day === undefined) return undefined;
  const isDay = new Date(`${day}T00:00:00Z`).getUTCDate() === Number(day.slice(8)); // 30 February would become 2 March
  const instant = Date.parse(text);
  return isDay && instant >= first && instant < end ? instant : undefined;
}
