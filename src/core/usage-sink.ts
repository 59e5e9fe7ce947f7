/** What one journal has to tell the database, in one transaction: rows, sums, the holder's leases and the position, or nothing of it. */
export interface Shipment {
  /** The holder of the leases that the rows were charged to. */
  readonly holder: string;
  /** `<holder>/<writer>` */
  readonly journal: string;
  /** Where the shipment before ended, 0 at first. Bytes, only growing. */
  readonly from: number;
  readonly to: number;
  /** Settled rows (`SettledRow`) as a JSON array in UTF-8. A row that is already booked is not counted again. The bytes are valid until `ship` has resolved. */
  readonly rows: Uint8Array;
}

/** What the journals need of the database. */
export interface UsageSink {
  /**
   * Does nothing when the stored position is at `to` or beyond.
   * @returns which of the rows, by their places from 0, were left out because another one is booked under their request and step
   * @throws Fault `conflict` when `from` is not the stored position, `invalid` when a row can never be written, `overloaded` while the database is away
   */
  ship(shipment: Shipment): Promise<readonly number[]>;
  /** The shipped length of a journal (bytes); 0 for an unknown one. */
  position(journal: string): Promise<number>;
  /** The holder is no more and all it settled is shipped, `rows` of it just now: what it did not spend is free again. Twice is as good as once. */
  close(holder: string, rows: number): Promise<void>;
}
