/** What the settings know of a kind of provider: data that its module declares (`providers/modules`), and that is handed to whoever reads settings. */
export interface ProviderKind {
  /** The wire format that it speaks. */
  readonly dialect: string;
  /** Its name, where its addresses differ from the usual ones of the dialect. */
  readonly kind?: string;
  /** The servers that speak the dialect, for the description of the settings: `any server of the Gemini API`. */
  readonly serves?: string;
  /** Settings of a provider that go with this kind alone. */
  readonly takes?: readonly string[];
  /** Those of them that it cannot do without. */
  readonly needs?: readonly string[];
  /** Entries for a settings file, by the names of the providers. */
  readonly examples?: Readonly<Record<string, object>>;
  /** The provider that an environment variable switches on, where no file names it. */
  readonly fromEnvironment?: EnvironmentProvider;
}

export interface EnvironmentProvider {
  /** Of the provider. */
  readonly name: string;
  /** The variable of its key. */
  readonly key?: string;
  /** The variable of its address. */
  readonly address?: string;
  /** Its address where no variable says another. */
  readonly baseUrl: string;
}
