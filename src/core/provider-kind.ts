/** The declaration of a kind of provider for the settings: data from its module (`providers/modules`), passed to the readers of settings. */
export interface ProviderKind {
  /** The wire format of its providers. */
  readonly dialect: string;
  /** The name of the kind, if its addresses differ from the usual ones of the dialect. */
  readonly kind?: string;
  /** The servers that speak the dialect, for the description of the settings: `any server of the Gemini API`. */
  readonly serves?: string;
  /** Settings that only providers of this kind have. */
  readonly takes?: readonly string[];
  /** Publishers of models that need another dialect there. */
  readonly otherPublishers?: Readonly<Record<string, string>>;
  /** The required ones among them. */
  readonly needs?: readonly string[];
  /** Base addresses may end in `?api-version=…`, as those of Azure AI Foundry do. */
  readonly versioned?: true;
  /** Example entries for a settings file, by provider name. */
  readonly examples?: Readonly<Record<string, object>>;
  /** The provider that an environment variable enables if no settings file names it. */
  readonly fromEnvironment?: EnvironmentProvider;
  /** Environment variables that the SDKs of the vendor read and Dragoman does not, with the variable or the setting to use in their place. */
  readonly unread?: Readonly<Record<string, string>>;
}

export interface EnvironmentProvider {
  readonly name: string;
  /** The environment variable of its key. */
  readonly key?: string;
  /** The environment variable of its address. */
  readonly address?: string;
  /** Its address if that variable is not set. */
  readonly baseUrl: string;
  /** How the names of the vendor's models begin, where they go to this vendor before any other: to the provider of this name, else at this address, else of this dialect. */
  readonly models?: readonly string[];
}
