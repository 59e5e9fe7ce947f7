/** The owner of a user's jobs: owners take turns, and the jobs of a deleted user go. */
export const jobOwner = (userId: number) => `user:${userId}`;
