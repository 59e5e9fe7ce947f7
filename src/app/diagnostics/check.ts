export interface Check {
  /** `database`, `provider openai`, `region us-east1 of platform` */
  readonly name: string;
  /** `failed`: something does not work. `warning`: it works, but needs attention. `skipped`: there was nothing to check. */
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly says: string;
  /** How long the check took, where that is of interest. */
  readonly milliseconds: number | null;
}
