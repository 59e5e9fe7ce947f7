/** As browsers read them: https://html.spec.whatwg.org/multipage/tables.html#forming-a-table */
const mostSpan = { columns: 1000, rows: 65_534 } as const;

/** The columns of the cells of a table, some of which reach over several columns and rows. */
export class Columns {
  readonly #spend: (steps: number) => void;
  /** For each column, the row before which a cell above ends that reaches into it. */
  #until: number[] = [];
  #row = 0;
  #next = 0;
  #written = 0;

  /** @param spend throws where a table has more covered places than are worth writing */
  constructor(spend: (steps: number) => void) {
    this.#spend = spend;
  }

  nextRow(): void {
    this.#row++;
    this.#next = this.#written = 0;
  }

  /** No cell reaches beyond the head, the body or the foot that it is in. */
  nextGroup(): void {
    this.#until = [];
  }

  /** @param span no rows mean all that follow @returns how many empty cells stand before this one, in the place of what other cells cover */
  place(span: { readonly columns: number; readonly rows: number }): number {
    const columns = Math.min(span.columns || 1, mostSpan.columns);
    const rows = Math.min(span.rows || mostSpan.rows, mostSpan.rows);
    while ((this.#until[this.#next] ?? 0) > this.#row) this.#next++;
    const empty = this.#next - this.#written;
    this.#spend(empty + (rows > 1 ? columns : 0));
    if (rows > 1) for (let at = this.#next; at < this.#next + columns; at++) this.#until[at] = this.#row + rows;
    this.#written = this.#next + 1;
    this.#next += columns;
    return empty;
  }
}
