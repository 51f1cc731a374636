"""What a change would do, worked out before anything is changed. Pure: state in, plan out."""
