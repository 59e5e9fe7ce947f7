import type { PlanItem, Run } from '#core/run';

/** The plan of a run as clients see it: each change of it is told once. */
export class Plan {
  readonly #run: Run;
  readonly #items: PlanItem[] = [];

  constructor(run: Run) {
    this.#run = run;
  }

  get tasks(): readonly string[] {
    return this.#items.map(({ text }) => text);
  }

  /** Adds tasks, in this state. @returns their items */
  async add(tasks: readonly string[], state: PlanItem['state'] = 'waiting'): Promise<readonly PlanItem[]> {
    const event = this.#items.length === 0 ? 'plan.created' : 'plan.updated';
    const added = tasks.map((text, at): PlanItem => ({ id: String(this.#items.length + at + 1), text, state }));
    this.#items.push(...added);
    if (added.length > 0) await this.#tell(event, `added/${added[0]!.id}`);
    return added;
  }

  async move({ id }: PlanItem, state: PlanItem['state']): Promise<void> {
    const at = Number(id) - 1;
    this.#items[at] = { ...this.#items[at]!, state };
    await this.#tell('plan.updated', `${state}/${id}`);
  }

  #tell(event: 'plan.created' | 'plan.updated', key: string): Promise<void> {
    const items = [...this.#items];
    return this.#run.step(`plan/${key}`, async () => this.#run.emit({ event, data: { items } }));
  }
}
